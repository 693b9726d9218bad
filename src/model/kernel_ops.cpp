#include "model/kernel_ops.h"

#include <algorithm>
#include <stdexcept>

#include <mlx/backend/cpu/encoder.h>
#include <mlx/ops.h>
#include <mlx/primitives.h>

#include "cache/block_kv_cache.h"

namespace ingle {
namespace {

// Compute: void(const float* x, float* out).
template <class Compute>
class KernelPrimitive final : public mx::UnaryPrimitive {
 public:
  KernelPrimitive(mx::Stream stream, Compute compute)
      : mx::UnaryPrimitive(stream),
        compute_(std::make_shared<Compute>(std::move(compute))) {}

  // MLX's ops only queue their work here, on a thread of their stream: so does
  // this one, and holds what it needs beyond the primitive's own life.
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    out.set_data(mx::allocator::malloc(out.nbytes()));
    mx::cpu::get_command_encoder(stream()).dispatch(
        [compute = compute_,
         x = inputs.front().data<float>(),
         data = out.data<float>()] { (*compute)(x, data); });
  }
  void eval_gpu(const std::vector<mx::array>&, mx::array&) override {
    throw std::runtime_error("[ingle kernel] runs on a CPU only");
  }
  const char* name() const override {
    return "IngleKernel";
  }

 private:
  std::shared_ptr<Compute> compute_;
};

// An array [rows, columns] in f32, computed at once.
template <class Compute>
mx::array
computed(CpuKernels& kernels, int rows, int columns, Compute&& compute) {
  mx::array out = kernels.output(rows, columns);
  kernels.evaluate([&] { compute(out.data<float>()); });
  return out;
}

bool is_plain(const mx::array& x) {
  return x.dtype() == mx::float32 && x.flags().row_contiguous;
}

bool is_ready(const mx::array& x) {
  return x.is_available() && is_plain(x);
}

// The same from x, when it is evaluated.
template <class Compute>
mx::array
computed_later(const mx::array& x, int rows, int columns, Compute compute) {
  return mx::array(
      {rows, columns},
      mx::float32,
      std::make_shared<KernelPrimitive<Compute>>(
          mx::default_stream(mx::Device::cpu), std::move(compute)),
      {mx::contiguous(mx::astype(x, mx::float32))});
}

// At once where x is there as the kernels read it.
template <class Compute>
mx::array computed_from(
    const mx::array& x,
    CpuKernels& kernels,
    int rows,
    int columns,
    Compute compute) {
  return is_ready(x) ? computed(
                           kernels,
                           rows,
                           columns,
                           [&](float* out) { compute(x.data<float>(), out); })
                     : computed_later(x, rows, columns, std::move(compute));
}

LinearView view_of(const Linear& linear) {
  return {
      &linear.matrix.packed,
      linear.bias ? linear.bias->data<float>() : nullptr};
}

NormView view_of(const mx::array& norm, float eps) {
  return {norm.data<float>(), eps};
}
NormView view_of(const std::optional<mx::array>& norm, float eps) {
  return norm ? view_of(*norm, eps) : NormView{};
}

ResidualView view_of(const Residual& residual, float eps) {
  return {view_of(residual.norm, eps), residual.scale};
}

AttentionView view_of(
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope* rope,
    const RopeAngles* angles,
    float eps) {
  AttentionView view{
      .norm = view_of(weights.norm, eps),
      .q = view_of(weights.q),
      .k = view_of(weights.k),
      .v = view_of(weights.v),
      .o = view_of(weights.o),
      .q_norm = view_of(weights.q_norm, eps),
      .k_norm = view_of(weights.k_norm, eps),
      .norms_all_heads = weights.q_norm &&
          weights.q_norm->shape(0) == weights.q.matrix.packed.rows,
      .residual = view_of(weights.residual, eps),
      .heads = shape.heads,
      .kv_heads = shape.kv_heads,
      .head_dim = shape.head_dim,
      .scale = shape.scale,
      .soft_cap = shape.soft_cap,
      .window = shape.window};
  if (shape.kv) {
    view.kv_bits = shape.kv->bits;
    view.kv_group_size = shape.kv->group_size;
  }
  if (rope != nullptr) {
    view.rope_dims = rope->dims();
    view.traditional_rope = rope->is_traditional();
    view.cosines = angles->cosines.data();
    view.sines = angles->sines.data();
  }
  return view;
}

MlpView view_of(const MlpWeights& weights, float eps) {
  return {
      .norm = view_of(weights.norm, eps),
      .gate = view_of(weights.gate),
      .up = view_of(weights.up),
      .down = view_of(weights.down),
      .activation = weights.activation,
      .residual = view_of(weights.residual, eps)};
}

BlockKvCache& cache_of(const Row& row, size_t layer) {
  return static_cast<BlockKvCache&>(row.kv->layer(layer));
}

// Where each of `count` layers from `first` on keeps its rows' tokens, for
// which there is room then: layer by layer, [count, rows].
std::vector<AttentionRow> extend(const Step& step, size_t first, size_t count) {
  std::vector<AttentionRow> extended;
  extended.reserve(count * step.rows().size());
  for (size_t layer = first; layer < first + count; ++layer) {
    for (const Row& row : step.rows()) {
      BlockKvCache& cache = cache_of(row, layer);
      const int64_t position = cache.offset() + cache.pending();
      const auto tokens = static_cast<int>(row.tokens.size());
      std::byte* blocks = cache.extend(tokens);
      extended.push_back({tokens, position, blocks, cache.first_block()});
    }
  }
  return extended;
}

// Who owns that.
std::vector<std::shared_ptr<const void>>
buffers_of(const Step& step, size_t first, size_t count) {
  std::vector<std::shared_ptr<const void>> buffers;
  for (size_t layer = first; layer < first + count; ++layer) {
    for (const Row& row : step.rows()) {
      buffers.push_back(cache_of(row, layer).buffer());
    }
  }
  return buffers;
}

// What starts with attention, of `count` layers whose caches get room for the
// step's tokens: compute(extended, x, out).
template <class Compute>
mx::array computed_with_caches(
    const Step& step,
    const mx::array& x,
    size_t first,
    size_t count,
    Compute compute) {
  auto extended = extend(step, first, count);
  if (is_ready(x)) {
    return computed(*step.kernels(), x.shape(0), x.shape(1), [&](float* out) {
      compute(extended, x.data<float>(), out);
    });
  }
  mx::array out = computed_later(
      x,
      x.shape(0),
      x.shape(1),
      [extended = std::move(extended),
       buffers = buffers_of(step, first, count),
       compute = std::move(compute)](const float* in, float* result) {
        compute(extended, in, result);
      });
  for (const Row& row : step.rows()) {
    row.kv->set_writer(out);
  }
  return out;
}

} // namespace

mx::array kernel_embed(
    CpuKernels& kernels,
    std::span<const TokenId> ids,
    const Matrix& embedding,
    float scale) {
  return computed(
      kernels,
      static_cast<int>(ids.size()),
      embedding.packed.columns,
      [&](float* out) {
        embed(kernels.context(), embedding.packed, ids, scale, out);
      });
}

mx::array kernel_attend_and_add(
    Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope* rope,
    float eps,
    size_t layer) {
  return computed_with_caches(
      step,
      x,
      layer,
      1,
      [&kernels = *step.kernels(),
       &weights,
       &shape,
       rope,
       angles = step.angles(rope),
       eps](std::span<const AttentionRow> rows, const float* in, float* out) {
        attend_and_add(
            kernels.context(),
            view_of(weights, shape, rope, angles.get(), eps),
            rows,
            in,
            out);
      });
}

mx::array kernel_mlp_and_add(
    CpuKernels& kernels,
    const mx::array& x,
    const MlpWeights& weights,
    float eps) {
  return computed_from(
      x,
      kernels,
      x.shape(0),
      x.shape(1),
      [&kernels, &weights, eps, tokens = x.shape(0)](
          const float* in, float* out) {
        mlp_and_add(kernels.context(), view_of(weights, eps), tokens, in, out);
      });
}

mx::array kernel_decoder_layers(
    Step& step,
    const mx::array& x,
    std::span<const DecoderLayer> layers,
    float eps,
    size_t first) {
  std::vector<std::shared_ptr<const RopeAngles>> angles;
  angles.reserve(layers.size());
  for (const DecoderLayer& layer : layers) {
    angles.push_back(step.angles(layer.rope));
  }
  return computed_with_caches(
      step,
      x,
      first,
      layers.size(),
      [&kernels = *step.kernels(), layers, angles = std::move(angles), eps](
          std::span<const AttentionRow> extended, const float* in, float* out) {
        const size_t rows = extended.size() / layers.size();
        for (size_t i = 0; i < layers.size(); ++i) {
          const DecoderLayer& layer = layers[i];
          decoder_layer(
              kernels.context(),
              view_of(
                  layer.attention,
                  layer.shape,
                  layer.rope,
                  angles[i].get(),
                  eps),
              view_of(layer.mlp, eps),
              extended.subspan(i * rows, rows),
              i == 0 ? in : out,
              out);
        }
      });
}

mx::array kernel_take_rows(
    CpuKernels& kernels,
    const mx::array& x,
    std::vector<int> rows) {
  const auto count = static_cast<int>(rows.size());
  const auto columns = static_cast<size_t>(x.shape(1));
  return computed_from(
      x,
      kernels,
      count,
      x.shape(1),
      [rows = std::move(rows), columns](const float* in, float* out) {
        for (const int row : rows) {
          std::copy_n(in + static_cast<size_t>(row) * columns, columns, out);
          out += columns;
        }
      });
}

mx::array kernel_norm_and_head(
    CpuKernels& kernels,
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps,
    float soft_cap) {
  return computed_from(
      x,
      kernels,
      x.shape(0),
      head.packed.rows,
      [&kernels, &norm, &head, eps, soft_cap, tokens = x.shape(0)](
          const float* in, float* out) {
        norm_and_head(
            kernels.context(),
            view_of(norm, eps),
            {&head.packed, nullptr},
            soft_cap,
            tokens,
            in,
            out);
      });
}

} // namespace ingle
