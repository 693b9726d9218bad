// Every kernel of src/kernels over shapes of several models, as a share of what
// the machine gives the same threads in the same run:
//
//   GB/s, of_read   weights, keys and values, inputs and outputs that go past
//   GOP/s, of_ops   multiplications and additions, of each plane of inputs
//
// Weights, keys and values are read from memory that no cache holds, as a model
// that is larger than the caches has them. The instruction sets are those that
// the processor has, or the one that INGLE_ISA names.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>

#include "base/cores.h"
#include "ceilings.h"
#include "kernel_cases.h"
#include "kernels/attention.h"
#include "kernels/gated_delta.h"
#include "kernels/layer.h"
#include "kernels/products.h"
#include "kernels/testing/random_weights.h"

namespace ingle {
namespace {

using benchmark::Counter;
using benchmark::State;

struct Machine {
  const KernelSet& set;
  ThreadPool& pool;
  size_t memory = 0; // bytes that no cache holds
  Ceilings ceilings;
};

// ---- What is measured

// What one call reads and writes, and computes at which ceiling.
struct Work {
  double bytes = 0;
  double operations = 0;
  double ceiling_gop_s = 0;
};

template <class Call>
void repeat(State& state, Machine& machine, const Work& work, Call&& call) {
  const ThreadPool::Step awake(machine.pool);
  int64_t i = 0;
  call(i++); // grows what it works in
  const auto start = std::chrono::steady_clock::now();
  for (auto each : state) {
    call(i++);
  }
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  const double calls_per_s =
      static_cast<double>(state.iterations()) / taken.count();
  if (work.bytes > 0) {
    const double gb_s = work.bytes * calls_per_s / 1e9;
    state.counters["GB/s"] = gb_s;
    state.counters["of_read"] = gb_s / machine.ceilings.read_gb_s;
  }
  if (work.operations > 0) {
    const double gop_s = work.operations * calls_per_s / 1e9;
    state.counters["GOP/s"] = gop_s;
    state.counters["of_ops"] = gop_s / work.ceiling_gop_s;
  }
}

// Multiplications and additions of a product, all planes of its inputs.
Work product_work(
    const Machine& machine,
    Inputs inputs,
    const PackedMatrix& matrix,
    int tokens) {
  const double once = 2.0 * tokens * matrix.rows * matrix.columns;
  const auto bytes = static_cast<double>(matrix.panel_bytes()) *
      static_cast<double>(matrix.panels());
  if (matrix.is_dense()) {
    return {bytes, once, machine.ceilings.f32_gop_s};
  }
  return {
      bytes,
      once * (inputs == Inputs::kTwoPlanes ? 2 : 1),
      machine.ceilings.i8_gop_s};
}

Work sum(const std::vector<Work>& parts) {
  Work total;
  for (const Work& part : parts) {
    total.bytes += part.bytes;
    total.operations += part.operations;
    total.ceiling_gop_s = part.ceiling_gop_s;
  }
  return total;
}

// Copies of a matrix, one after the other, of `memory` bytes or one. A few
// random panels again and again: values change no kernel's time.
class Copies {
 public:
  Copies(const Format& format, const Shape& shape, size_t memory) {
    constexpr int kPanels = 4;
    std::mt19937 random{1};
    Arena arena;
    const PackedMatrix few = random_matrix(
                                 random,
                                 arena,
                                 std::min(shape.rows, kPanels * kPanelRows),
                                 shape.columns,
                                 format.bits,
                                 format.group_size,
                                 format.type)
                                 .packed;
    matrix_ = few;
    matrix_.rows = shape.rows;
    bytes_ = matrix_.panel_bytes() * static_cast<size_t>(matrix_.panels());
    count_ = std::max<size_t>(1, memory / bytes_);
    data_ = PageBuffer(count_ * bytes_);
    std::byte* to = data_.data();
    for (size_t copy = 0; copy < count_; ++copy) {
      for (int i = 0; i < matrix_.panels(); ++i) {
        std::memcpy(to, few.panel(i % few.panels()), few.panel_bytes());
        to += few.panel_bytes();
      }
    }
  }

  PackedMatrix operator[](int64_t i) const {
    PackedMatrix matrix = matrix_;
    matrix.data = data_.data() + static_cast<size_t>(i) % count_ * bytes_;
    return matrix;
  }

 private:
  PackedMatrix matrix_;
  size_t bytes_ = 0;
  size_t count_ = 0;
  PageBuffer data_;
};

std::vector<float> some_floats(int rows, int columns) {
  std::mt19937 random{2};
  return random_floats(random, rows * columns);
}

auto row_of(const std::vector<float>& x, int columns) {
  return [&x, columns](int t, float*) {
    return x.data() + static_cast<ptrdiff_t>(t) * columns;
  };
}

void multiply(
    State& state,
    Machine& machine,
    const Format& format,
    const Shape& shape,
    Inputs planes,
    int tokens) {
  const Copies matrices(format, shape, machine.memory);
  const PackedMatrix first = matrices[0];
  KernelContext context{machine.set, machine.pool, planes};
  ProductInputs inputs(context, tokens, {{&first, nullptr}});
  const auto x = some_floats(tokens, shape.columns);
  std::vector<float> out(
      static_cast<size_t>(tokens) * static_cast<size_t>(shape.rows));
  machine.pool.run(
      [&](int thread) { inputs.pack(thread, row_of(x, shape.columns)); });
  repeat(
      state,
      machine,
      product_work(machine, planes, first, tokens),
      [&](int64_t i) {
        const PackedMatrix matrix = matrices[i];
        const Product product{
            .matrix = &matrix, .out = out.data(), .stride = shape.rows};
        machine.pool.run([&](int thread) { inputs.multiply(thread, product); });
      });
}

void pack_tile(State& state, Machine& machine, Inputs inputs, int columns) {
  const Format format = inputs == Inputs::kFloats ? Format{} : kUsualFormat;
  const Copies matrices(format, {kPanelRows, columns}, 0);
  const PackedMatrix matrix = matrices[0];
  KernelContext context{machine.set, machine.pool, inputs};
  ProductInputs packed(context, kRows, {{&matrix, nullptr}});
  const auto x = some_floats(kRows, columns);
  const int packed_bytes = inputs == Inputs::kFloats ? 4
      : inputs == Inputs::kTwoPlanes                 ? 2
                                                     : 1;
  repeat(
      state,
      machine,
      {1.0 * kRows * columns * (4 + packed_bytes)},
      [&](int64_t) {
        machine.pool.run(
            [&](int thread) { packed.pack(thread, row_of(x, columns)); });
      });
}

// Keys and values of one layer, `count` times.
class KvCopies {
 public:
  KvCopies(const Machine& machine, const AttendCase& c)
      : shape_{c.head_dim, c.kv_bits},
        blocks_(
            static_cast<size_t>(
                (c.depth + c.tokens + kBlockPositions - 1) / kBlockPositions) *
            static_cast<size_t>(c.kv_heads)),
        count_(std::max<size_t>(1, machine.memory / bytes())),
        data_(count_ * bytes()) {
    const auto x = some_floats(2 * kBlockPositions, c.head_dim);
    for (int p = 0; p < kBlockPositions; ++p) {
      const float* key = x.data() + static_cast<ptrdiff_t>(2) * p * c.head_dim;
      machine.set.put_kv(key, key + c.head_dim, shape_, p, data_.data());
    }
    for (size_t i = 1; i < count_ * blocks_; ++i) {
      std::memcpy(
          data_.data() + i * shape_.bytes(), data_.data(), shape_.bytes());
    }
  }

  size_t bytes() const { // of one layer
    return blocks_ * shape_.bytes();
  }
  std::byte* operator[](int64_t i) const {
    return data_.data() + static_cast<size_t>(i) % count_ * bytes();
  }

 private:
  KvBlockShape shape_;
  size_t blocks_;
  size_t count_;
  PageBuffer data_;
};

// All of attention but the projections before and after it.
void attend(State& state, Machine& machine, const AttendCase& c) {
  const KvCopies kv(machine, c);
  const std::vector<float> cosines(
      static_cast<size_t>(c.tokens * c.head_dim / 2), 1);
  const std::vector<float> sines(cosines.size(), 0);
  AttentionView view;
  view.heads = c.heads;
  view.kv_heads = c.kv_heads;
  view.head_dim = c.head_dim;
  view.kv_bits = c.kv_bits;
  view.scale = 0.1f;
  view.rope_dims = c.head_dim;
  view.cosines = cosines.data();
  view.sines = sines.data();
  KernelContext context{machine.set, machine.pool, Inputs::kTwoPlanes};
  const auto projected =
      some_floats(c.tokens, (c.heads + 2 * c.kv_heads) * c.head_dim);
  context.projected.reserve(projected.size() * sizeof(float));
  std::memcpy(
      context.projected.data(),
      projected.data(),
      projected.size() * sizeof(float));

  std::vector<std::vector<float>> merged(
      static_cast<size_t>(machine.pool.threads()),
      some_floats(1, c.heads * c.head_dim));

  const double seen =
      1.0 * c.tokens * c.depth + 0.5 * c.tokens * (c.tokens + 1);
  const Work work{
      static_cast<double>(kv.bytes()),
      4.0 * c.heads * c.head_dim * seen,
      machine.ceilings.i16_gop_s};
  repeat(state, machine, work, [&](int64_t i) {
    const AttentionRow row{c.tokens, c.depth, kv[i]};
    Attention attention(context, view, {&row, 1});
    machine.pool.run([&](int thread) {
      attention.attend(thread);
      const Share share = share_of(c.tokens, thread, machine.pool.threads());
      for (int t = share.begin; t < share.end; ++t) {
        attention.attended(
            thread, t, merged[static_cast<size_t>(thread)].data());
      }
    });
  });
}

GatedDeltaShape shape_of(const DeltaCase& c) {
  return {c.key_heads, c.value_heads, c.head_dim, c.head_dim, 4};
}

// The delta rule alone, in blocks of tokens as a layer has them.
void delta_rule(State& state, Machine& machine, const DeltaCase& c) {
  constexpr int kBlock = 16;
  const GatedDeltaShape shape = shape_of(c);
  const size_t head_bytes = sizeof(float) * shape.head_floats();
  const size_t bytes = static_cast<size_t>(c.value_heads) * head_bytes;
  const size_t copies = std::max<size_t>(1, machine.memory / bytes);
  const PageBuffer states(copies * bytes);
  const auto x = some_floats(kBlock, c.head_dim);
  const std::vector<float> half(kBlock, 0.5f);
  // Keys are no unit vectors here: S must not grow.
  const std::vector<float> little(
      kBlock, 0.5f / static_cast<float>(c.head_dim));
  std::vector<float> out(
      static_cast<size_t>(c.value_heads) * kBlock *
      static_cast<size_t>(c.head_dim));
  const double elements = static_cast<double>(bytes) / sizeof(float);
  const Work work{
      2.0 * static_cast<double>(bytes),
      7.0 * c.tokens * elements,
      machine.ceilings.f32_gop_s};
  repeat(state, machine, work, [&](int64_t i) {
    std::byte* at = states.data() + static_cast<size_t>(i) % copies * bytes;
    machine.pool.run([&](int thread) {
      const Share heads =
          share_of(c.value_heads, thread, machine.pool.threads());
      for (int h = heads.begin; h < heads.end; ++h) {
        const auto own =
            reinterpret_cast<float*>(at + static_cast<size_t>(h) * head_bytes);
        for (int t = 0; t < c.tokens; t += kBlock) {
          machine.set.delta_rule(
              {.tokens = std::min(kBlock, c.tokens - t),
               .key_dim = c.head_dim,
               .value_dim = c.head_dim,
               .queries = x.data(),
               .keys = x.data(),
               .values = x.data(),
               .decays = half.data(),
               .betas = little.data(),
               .before = own,
               .after = own,
               .out = out.data() + ptrdiff_t{h} * kBlock * c.head_dim,
               .out_stride = c.head_dim});
        }
      }
    });
  });
}

void gated_delta(State& state, Machine& machine, const DeltaCase& c) {
  const GatedDeltaShape shape = shape_of(c);
  const size_t memory = machine.memory / 3;
  const Copies qkvs(kUsualFormat, {shape.channels(), c.hidden}, memory);
  const Copies zs(kUsualFormat, {shape.value_width(), c.hidden}, memory);
  const Copies outs(kUsualFormat, {c.hidden, shape.value_width()}, memory);
  const Copies gates(kUsualFormat, {c.value_heads, c.hidden}, 0);
  const PackedMatrix gate = gates[0];
  const auto norm = some_floats(1, c.hidden);
  const auto conv = some_floats(shape.taps, shape.channels());
  const std::vector<float> half(static_cast<size_t>(c.value_heads), 0.5f);
  const auto head_norm = some_floats(1, c.head_dim);
  const auto x = some_floats(c.tokens, c.hidden);
  std::vector<float> out(x.size());
  const size_t states = std::max<size_t>(2, memory / shape.state_bytes());
  const PageBuffer buffers(states * shape.state_bytes());
  const auto state_at = [&](int64_t i) {
    return buffers.data() +
        static_cast<size_t>(i) % states * shape.state_bytes();
  };
  KernelContext context{machine.set, machine.pool, Inputs::kTwoPlanes};
  Work work = sum(
      {product_work(machine, Inputs::kTwoPlanes, qkvs[0], c.tokens),
       product_work(machine, Inputs::kTwoPlanes, zs[0], c.tokens),
       product_work(machine, Inputs::kTwoPlanes, outs[0], c.tokens)});
  work.bytes += 2.0 * static_cast<double>(shape.state_bytes());
  repeat(state, machine, work, [&](int64_t i) {
    const PackedMatrix qkv = qkvs[i];
    const PackedMatrix z = zs[i];
    const PackedMatrix o = outs[i];
    const GatedDeltaView view{
        .norm = {norm.data(), 1e-6f},
        .qkv = {&qkv},
        .z = {&z},
        .b = {&gate},
        .a = {&gate},
        .out = {&o},
        .conv = conv.data(),
        .decay_rate = half.data(),
        .decay_bias = half.data(),
        .head_norm = {head_norm.data(), 1e-6f},
        .shape = shape};
    const GatedDeltaRow row{c.tokens, state_at(i), state_at(i + 1)};
    gated_delta_and_add(context, view, {&row, 1}, x.data(), out.data());
  });
}

// `shape`: hidden and inner size.
void mlp(
    State& state,
    Machine& machine,
    const Shape& shape,
    Inputs planes,
    int tokens) {
  const int hidden = shape.rows;
  const int inner = shape.columns;
  const size_t memory = machine.memory / 3;
  const Copies gates(kUsualFormat, {inner, hidden}, memory);
  const Copies ups(kUsualFormat, {inner, hidden}, memory);
  const Copies downs(kUsualFormat, {hidden, inner}, memory);
  KernelContext context{machine.set, machine.pool, planes};
  const auto norm = some_floats(1, hidden);
  const auto x = some_floats(tokens, hidden);
  std::vector<float> out(x.size());
  const Work work = sum(
      {product_work(machine, planes, gates[0], tokens),
       product_work(machine, planes, ups[0], tokens),
       product_work(machine, planes, downs[0], tokens)});
  repeat(state, machine, work, [&](int64_t i) {
    const PackedMatrix gate = gates[i];
    const PackedMatrix up = ups[i];
    const PackedMatrix down = downs[i];
    const MlpView view{
        .norm = {norm.data(), 1e-5f},
        .gate = {&gate, nullptr},
        .up = {&up, nullptr},
        .down = {&down, nullptr}};
    mlp_and_add(context, view, tokens, x.data(), out.data());
  });
}

void head(State& state, Machine& machine, const Shape& shape, int tokens) {
  const Copies matrices(kHeadFormat, shape, machine.memory);
  KernelContext context{machine.set, machine.pool, Inputs::kTwoPlanes};
  const auto norm = some_floats(1, shape.columns);
  const auto x = some_floats(tokens, shape.columns);
  std::vector<float> out(
      static_cast<size_t>(tokens) * static_cast<size_t>(shape.rows));
  repeat(
      state,
      machine,
      product_work(machine, Inputs::kTwoPlanes, matrices[0], tokens),
      [&](int64_t i) {
        const PackedMatrix matrix = matrices[i];
        norm_and_head(
            context,
            {norm.data(), 1e-5f},
            {&matrix, nullptr},
            0,
            tokens,
            x.data(),
            out.data());
      });
}

void embed_rows(State& state, Machine& machine, const Shape& shape) {
  const Copies tables(kHeadFormat, shape, 0);
  const PackedMatrix table = tables[0];
  KernelContext context{machine.set, machine.pool, Inputs::kTwoPlanes};
  std::mt19937 random{3};
  std::uniform_int_distribution<int32_t> any(0, shape.rows - 1);
  std::vector<int32_t> ids;
  for (int t = 0; t < kRows; ++t) {
    ids.push_back(any(random));
  }
  std::vector<float> out(ids.size() * static_cast<size_t>(shape.columns));
  const double row_bytes =
      static_cast<double>(table.panel_bytes()) / kPanelRows +
      4.0 * shape.columns;
  repeat(state, machine, {kRows * row_bytes}, [&](int64_t) {
    embed(context, table, ids, 1, out.data());
  });
}

void norm_rows(State& state, Machine& machine, int columns) {
  const auto weight = some_floats(1, columns);
  const auto x = some_floats(kRows, columns);
  std::vector<float> out(x.size());
  repeat(state, machine, {8.0 * kRows * columns}, [&](int64_t) {
    machine.pool.run([&](int thread) {
      const Share share = share_of(kRows, thread, machine.pool.threads());
      for (int t = share.begin; t < share.end; ++t) {
        const auto at = static_cast<ptrdiff_t>(t) * columns;
        machine.set.rms_norm(
            x.data() + at, weight.data(), 1e-5f, columns, out.data() + at);
      }
    });
  });
}

void run_region(State& state, Machine& machine) {
  repeat(state, machine, {}, [&](int64_t) { machine.pool.run([](int) {}); });
}

void pass_barriers(State& state, Machine& machine) {
  constexpr int kBarriers = 100;
  repeat(state, machine, {}, [&](int64_t) {
    machine.pool.run([&](int thread) {
      for (int i = 0; i < kBarriers; ++i) {
        machine.pool.barrier(thread);
      }
    });
  });
  state.counters["each_s"] =
      Counter(kBarriers, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

// ---- The list of them

// Registers benchmarks of one instruction set.
class List {
 public:
  explicit List(Machine& machine) : machine_(machine) {}

  void add_all() {
    add_products();
    for (const AttendCase& c : kAttendCases) {
      const std::string shape = std::to_string(c.heads) + "over" +
          std::to_string(c.kv_heads) + "x" + std::to_string(c.head_dim);
      add("attend/" + shape + "/" + std::to_string(c.tokens) + "@" +
              std::to_string(c.depth) +
              (c.kv_bits == 16 ? "" : "_kv" + std::to_string(c.kv_bits)),
          attend,
          c);
    }
    for (const DeltaCase& c : kDeltaCases) {
      const std::string tail = std::to_string(c.value_heads) + "x" +
          std::to_string(c.head_dim) + "/" + std::to_string(c.tokens);
      add("delta_rule/" + tail, delta_rule, c);
      add("gated_delta/" + std::to_string(c.hidden) + "/" + tail,
          gated_delta,
          c);
    }
    for (const Inputs planes : kPlanes) {
      for (const int tokens : kTokens) {
        for (const Shape& shape : kMlps) {
          add("mlp/" + tail(shape, planes, tokens), mlp, shape, planes, tokens);
        }
      }
    }
    for (const Shape& shape : kHeads) {
      for (const int tokens : kTokens) {
        if (tokens < 512) { // nobody wants the logits of all
          add("head/" + name_of(shape) + "/" + std::to_string(tokens),
              head,
              shape,
              tokens);
        }
      }
    }
    for (const Shape& shape : kHeads) {
      add("embed/" + name_of(shape), embed_rows, shape);
    }
    for (const int width : kWidths) {
      add("rms_norm/" + std::to_string(width), norm_rows, width);
      for (const Inputs inputs :
           {Inputs::kTwoPlanes, Inputs::kOnePlane, Inputs::kFloats}) {
        add("pack_tile/" + name_of(inputs) + "/" + std::to_string(width),
            pack_tile,
            inputs,
            width);
      }
    }
    add("pool/region", run_region);
    add("pool/barriers", pass_barriers);
  }

 private:
  static std::string tail(const Shape& shape, Inputs inputs, int tokens) {
    return name_of(shape) + "/" + name_of(inputs) + "/" +
        std::to_string(tokens);
  }

  template <class Function, class... Arguments>
  void add(const std::string& name, Function function, Arguments... arguments) {
    Machine& machine = machine_;
    benchmark::RegisterBenchmark(
        (std::string(to_string(machine.set.isa)) + "/" + name).c_str(),
        [&machine, function, arguments...](State& state) {
          function(state, machine, arguments...);
        })
        ->UseRealTime();
  }

  void add_product(const Format& format, const Shape& shape) {
    for (const int tokens : kTokens) {
      for (const Inputs planes : kPlanes) {
        const Inputs inputs = format.bits == 0 ? Inputs::kFloats : planes;
        add("product/" + name_of(format) + "/" + tail(shape, inputs, tokens),
            multiply,
            format,
            shape,
            planes,
            tokens);
        if (format.bits == 0) {
          break; // planes are nothing to it
        }
      }
    }
  }

  void add_products() {
    for (const Shape& shape : kShapes) {
      add_product(kUsualFormat, shape);
    }
    for (const int bits : kBits) {
      for (const int group_size : kGroupSizes) {
        if (bits != kUsualFormat.bits ||
            group_size != kUsualFormat.group_size) {
          add_product({bits, group_size}, kFormatsShape);
        }
      }
    }
    add_product(kMxfp4, kFormatsShape);
    for (const FloatType type : kFloatTypes) {
      for (const Shape& shape : {kShapes[0], kFormatsShape}) {
        add_product({.type = type}, shape);
      }
    }
  }

  Machine& machine_;
};

void print_help() {
  std::puts(
      "kernels_benchmark [--threads N]   default: one for each physical core\n"
      "                  [--memory MB]   more than caches hold (default: 192)\n"
      "and the options of Google Benchmark; INGLE_ISA chooses instructions:");
  benchmark::PrintDefaultHelp();
}

std::string describe(const Ceilings& ceilings) {
  char text[100];
  std::snprintf(
      text,
      sizeof text,
      "read %.1f GB/s, i8 %.0f, i16 %.0f, f32 %.0f GOP/s",
      ceilings.read_gb_s,
      ceilings.i8_gop_s,
      ceilings.i16_gop_s,
      ceilings.f32_gop_s);
  return text;
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv, print_help);
  const auto fs = make_posix_file_system();
  int threads = physical_cores(*fs);
  size_t megabytes = 192;
  CLI::App app;
  app.add_option("--threads", threads)->check(CLI::Range(1, 1024));
  app.add_option("--memory", megabytes)->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);

  std::vector<Isa> isas = supported_isas();
  if (const char* wanted = std::getenv("INGLE_ISA")) {
    const auto chosen = choose_isa(wanted);
    if (!chosen.is_ok()) {
      std::fprintf(stderr, "%s\n", chosen.status().message().c_str());
      return 1;
    }
    isas = {*chosen};
  }
  ThreadPool pool(threads);
  benchmark::AddCustomContext("threads", std::to_string(threads));
  std::vector<Machine> machines; // outlive what is registered
  machines.reserve(isas.size());
  for (const Isa isa : isas) {
    const size_t memory = megabytes << 20;
    machines.push_back(
        {kernel_set(isa), pool, memory, measure_ceilings(pool, isa, memory)});
    benchmark::AddCustomContext(
        std::string(to_string(isa)), describe(machines.back().ceilings));
    List(machines.back()).add_all();
  }
  // A filter that matches nothing is a mistake.
  return benchmark::RunSpecifiedBenchmarks() == 0 ? 1 : 0;
}

} // namespace
} // namespace ingle

int main(int argc, char** argv) {
  return ingle::run(argc, argv);
}
