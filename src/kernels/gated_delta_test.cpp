// A gated delta net: against plain f64, and the same bits however the work is
// cut.
#include "kernels/gated_delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "kernels/testing/bounds.h"
#include "kernels/testing/random_weights.h"

namespace ingle {
namespace {

constexpr int kHidden = 96;
constexpr float kEps = 1e-5f;

struct NetConfig {
  GatedDeltaShape shape;
  int bits = 4;
  int odd_bits = 4; // of b and a
};

std::vector<NetConfig> net_configs() {
  return {
      {{2, 4, 32, 32, 4}},
      {{2, 2, 16, 80, 2}}, // five panels
      {{1, 2, 24, 48, 3}, 3, 8},
      {{1, 3, 20, 20, 4}, 0, 0}, // no multiples of a register
      {{2, 2, 16, 16, 4}, 4, 0}};
}

class Net {
 public:
  explicit Net(const NetConfig& c) : shape(c.shape) {
    qkv = matrix(shape.channels(), kHidden, c.bits);
    z = matrix(shape.value_width(), kHidden, c.bits);
    b = matrix(shape.value_heads, kHidden, c.odd_bits);
    a = matrix(shape.value_heads, kHidden, c.odd_bits);
    out = matrix(kHidden, shape.value_width(), c.bits);
    norm = random_floats(random, kHidden);
    conv = random_floats(random, shape.taps * shape.channels());
    head_norm = random_floats(random, shape.value_dim);
    decay_bias = random_floats(random, shape.value_heads);
    for (const float x : random_floats(random, shape.value_heads)) {
      decay_rate.push_back(0.02f * std::abs(x));
    }
  }

  GatedDeltaView view() const {
    return {
        .norm = {norm.data(), kEps},
        .qkv = {&qkv.packed},
        .z = {&z.packed},
        .b = {&b.packed},
        .a = {&a.packed},
        .out = {&out.packed},
        .conv = conv.data(),
        .decay_rate = decay_rate.data(),
        .decay_bias = decay_bias.data(),
        .head_norm = {head_norm.data(), kEps},
        .shape = shape};
  }

  GatedDeltaShape shape;
  std::mt19937 random{11};
  Arena arena;
  RandomMatrix qkv, z, b, a, out;
  std::vector<float> norm, conv, head_norm, decay_bias, decay_rate;

 private:
  RandomMatrix matrix(int rows, int columns, int bits) {
    return random_matrix(
        random, arena, rows, columns, bits, 32, FloatType::kF16);
  }
};

// A sequence: its tokens' inputs, and its state, in two buffers by turns.
struct Sequence {
  Sequence(const Net& net, int tokens, int seed)
      : before(net.shape.state_bytes()), after(net.shape.state_bytes()) {
    std::mt19937 random(static_cast<unsigned>(seed));
    x = random_floats(random, tokens * kHidden);
  }

  std::vector<float> state() const {
    std::vector<float> floats(before.bytes() / sizeof(float));
    std::memcpy(floats.data(), before.data(), before.bytes());
    return floats;
  }

  std::vector<float> x;
  PageBuffer before;
  PageBuffer after;
  bool is_in_place = false;
};

struct Piece {
  Sequence* sequence = nullptr;
  int begin = 0;
  int end = 0;
};

// One step over the pieces: what comes out for each.
std::vector<std::vector<float>>
step(KernelContext& context, const Net& net, const std::vector<Piece>& pieces) {
  std::vector<GatedDeltaRow> rows;
  std::vector<float> x;
  for (const auto& [sequence, begin, end] : pieces) {
    std::byte* before = sequence->before.data();
    rows.push_back(
        {end - begin,
         before,
         sequence->is_in_place ? before : sequence->after.data()});
    const auto from = sequence->x.begin();
    x.insert(x.end(), from + begin * kHidden, from + end * kHidden);
  }
  std::vector<float> out(x.size());
  const ThreadPool::Step awake(context.pool);
  gated_delta_and_add(context, net.view(), rows, x.data(), out.data());
  std::vector<std::vector<float>> results;
  auto at = out.begin();
  for (const auto& [sequence, begin, end] : pieces) {
    if (!sequence->is_in_place) {
      std::swap(sequence->before, sequence->after);
    }
    results.emplace_back(at, at + (end - begin) * kHidden);
    at += (end - begin) * kHidden;
  }
  return results;
}

// What comes out of a whole sequence, and then its state.
struct Result {
  std::vector<float> out;
  std::vector<float> state;
  bool operator==(const Result&) const = default;
};

Result in_pieces(
    KernelContext& context,
    const Net& net,
    int tokens,
    int size,
    bool is_in_place = false) {
  Sequence sequence(net, tokens, 5);
  sequence.is_in_place = is_in_place;
  Result result;
  for (int begin = 0; begin < tokens; begin += size) {
    const int end = std::min(tokens, begin + size);
    const auto part = step(context, net, {{&sequence, begin, end}}).front();
    result.out.insert(result.out.end(), part.begin(), part.end());
  }
  result.state = sequence.state();
  return result;
}

using Numbers = std::vector<double>;

Numbers times(const Numbers& x, const RandomMatrix& m) {
  Numbers y(static_cast<size_t>(m.packed.rows));
  for (size_t n = 0; n < y.size(); ++n) {
    for (size_t i = 0; i < x.size(); ++i) {
      y[n] += x[i] * m.values[n * x.size() + i];
    }
  }
  return y;
}

double silu(double x) {
  return x / (1 + std::exp(-x));
}

Numbers normed(const Numbers& x, const std::vector<float>& weight) {
  double squares = 0;
  for (const double value : x) {
    squares += value * value;
  }
  const double scale =
      1 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
  Numbers y;
  for (size_t i = 0; i < x.size(); ++i) {
    y.push_back(x[i] * scale * weight[i]);
  }
  return y;
}

Numbers part_of(const Numbers& x, int begin, int count) {
  return {x.begin() + begin, x.begin() + begin + count};
}

Numbers unit(Numbers x, double length) {
  double squares = 1e-6;
  for (const double value : x) {
    squares += value * value;
  }
  for (double& value : x) {
    value *= length / std::sqrt(squares);
  }
  return x;
}

// One value head in f64.
struct ExactHead {
  explicit ExactHead(const GatedDeltaShape& shape)
      : s(static_cast<size_t>(shape.value_dim),
          Numbers(static_cast<size_t>(shape.key_dim))) {}

  Numbers read(
      const Numbers& q,
      const Numbers& k,
      const Numbers& v,
      double decay,
      double beta) {
    Numbers y(s.size());
    for (size_t row = 0; row < s.size(); ++row) {
      double found = 0;
      for (size_t i = 0; i < k.size(); ++i) {
        s[row][i] *= decay;
        found += s[row][i] * k[i];
      }
      for (size_t i = 0; i < k.size(); ++i) {
        s[row][i] += (v[row] - found) * beta * k[i];
        y[row] += s[row][i] * q[i];
      }
    }
    return y;
  }

  std::vector<Numbers> s;
};

// The convolution's output at a token.
Numbers convolved(const Net& net, const std::vector<Numbers>& qkv) {
  Numbers y(static_cast<size_t>(net.shape.channels()));
  for (int j = 0; j < net.shape.taps; ++j) {
    const int at = static_cast<int>(qkv.size()) - net.shape.taps + j;
    for (size_t c = 0; at >= 0 && c < y.size(); ++c) {
      y[c] += qkv[static_cast<size_t>(at)][c] *
          net.conv[static_cast<size_t>(j) * y.size() + c];
    }
  }
  std::ranges::transform(y, y.begin(), silu);
  return y;
}

// gated_delta_and_add() of a whole sequence in f64.
Numbers exact(const Net& net, const Sequence& sequence) {
  const GatedDeltaShape& shape = net.shape;
  std::vector<ExactHead> heads(
      static_cast<size_t>(shape.value_heads), ExactHead(shape));
  std::vector<Numbers> qkv;
  Numbers out;
  for (auto at = sequence.x.begin(); at != sequence.x.end(); at += kHidden) {
    const Numbers x(at, at + kHidden);
    const Numbers n = normed(x, net.norm);
    qkv.push_back(times(n, net.qkv));
    const Numbers mixed = convolved(net, qkv);
    const Numbers z = times(n, net.z);
    const Numbers b = times(n, net.b);
    const Numbers a = times(n, net.a);
    Numbers read;
    for (int h = 0; h < shape.value_heads; ++h) {
      const auto head = static_cast<size_t>(h);
      const int key_at =
          h / (shape.value_heads / shape.key_heads) * shape.key_dim;
      const Numbers y = heads[head].read(
          unit(
              part_of(mixed, key_at, shape.key_dim),
              1 / std::sqrt(static_cast<double>(shape.key_dim))),
          unit(part_of(mixed, shape.key_width() + key_at, shape.key_dim), 1),
          part_of(
              mixed,
              2 * shape.key_width() + h * shape.value_dim,
              shape.value_dim),
          std::exp(
              -net.decay_rate[head] *
              std::log1p(std::exp(a[head] + net.decay_bias[head]))),
          1 / (1 + std::exp(-b[head])));
      for (const double value : normed(y, net.head_norm)) {
        read.push_back(value * silu(z[read.size()]));
      }
    }
    const Numbers added = times(read, net.out);
    for (size_t i = 0; i < kHidden; ++i) {
      out.push_back(x[i] + added[i]);
    }
  }
  return out;
}

// sqrt(mean((a - b)^2) / mean(b^2))
double relative_error(const std::vector<float>& a, const Numbers& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

class GatedDeltaTest : public testing::TestWithParam<Isa> {
 protected:
  KernelContext context(ThreadPool& pool, Isa isa = GetParam()) const {
    return {kernel_set(isa), pool, Inputs::kTwoPlanes};
  }
};

INSTANTIATE_TEST_SUITE_P(
    Isas,
    GatedDeltaTest,
    testing::ValuesIn(supported_isas()),
    [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(GatedDeltaTest, IsNearTheExact) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const NetConfig& config : net_configs()) {
    const Net net(config);
    Sequence sequence(net, 70, 3);
    const auto out = step(context, net, {{&sequence, 0, 70}}).front();
    EXPECT_LT(relative_error(out, exact(net, sequence)), kGatedDeltaLayerBound);
  }
}

// Acceptance 203: S tokens at once equal token by token.
TEST_P(GatedDeltaTest, gdn_chunk_invariance) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const NetConfig& config : net_configs()) {
    const Net net(config);
    const Result whole = in_pieces(context, net, 100, 100);
    for (const int size : {1, 2, 3, 16, 37, 99}) {
      ASSERT_TRUE(in_pieces(context, net, 100, size) == whole) << size;
    }
  }
}

TEST_P(GatedDeltaTest, StateMayBeChangedWhereItStands) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const NetConfig& config : net_configs()) {
    const Net net(config);
    const Result apart = in_pieces(context, net, 50, 50);
    for (const int size : {1, 2, 20}) {
      ASSERT_TRUE(in_pieces(context, net, 50, size, true) == apart) << size;
    }
  }
}

TEST_P(GatedDeltaTest, StateBeforeTheStepIsLeftAsItWas) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  const Net net(net_configs().front());
  Sequence sequence(net, 40, 5);
  step(context, net, {{&sequence, 0, 30}});
  const auto before = sequence.state();
  const auto first = step(context, net, {{&sequence, 30, 40}});
  std::swap(sequence.before, sequence.after); // as if it had failed
  EXPECT_EQ(sequence.state(), before);
  EXPECT_EQ(step(context, net, {{&sequence, 30, 40}}), first);
}

TEST_P(GatedDeltaTest, AnyNumberOfThreadsGivesTheSameBits) {
  const Net net(net_configs().front());
  ThreadPool one(1);
  auto alone = context(one);
  for (const int threads : {2, 3, 5}) {
    ThreadPool pool(threads);
    auto together = context(pool);
    for (const int size : {1, 40}) {
      ASSERT_TRUE(
          in_pieces(together, net, 40, size) ==
          in_pieces(alone, net, 40, size));
    }
  }
}

TEST_P(GatedDeltaTest, AllInstructionSetsGiveTheSameBits) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  auto portable = this->context(pool, Isa::kPortable);
  for (const NetConfig& config : net_configs()) {
    const Net net(config);
    ASSERT_TRUE(
        in_pieces(context, net, 40, 40) == in_pieces(portable, net, 40, 40));
  }
}

TEST_P(GatedDeltaTest, RowsGetTheSameBitsWhateverIsBesideThem) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const NetConfig& config : net_configs()) {
    const Net net(config);
    // Three rows: one token, a prompt's piece, and two tokens.
    const std::vector<int> lengths = {30, 90, 20};
    const std::vector<int> last = {1, 40, 2};
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<Piece> pieces;
    std::vector<std::vector<float>> alone;
    for (size_t i = 0; i < lengths.size(); ++i) {
      for (const bool is_alone : {true, false}) {
        sequences.push_back(
            std::make_unique<Sequence>(net, lengths[i], static_cast<int>(i)));
        Sequence& sequence = *sequences.back();
        const int cut = lengths[i] - last[i];
        step(context, net, {{&sequence, 0, cut}});
        const Piece piece{&sequence, cut, lengths[i]};
        if (is_alone) {
          alone.push_back(step(context, net, {piece}).front());
        } else {
          pieces.push_back(piece);
        }
      }
    }
    EXPECT_EQ(step(context, net, pieces), alone);
  }
}

} // namespace
} // namespace ingle
