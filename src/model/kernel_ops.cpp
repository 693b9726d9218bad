#include "model/kernel_ops.h"

#include <algorithm>

#include "cache/block_kv_cache.h"
#include "model/kernel_compute.h"

namespace ingle {
namespace {

// What a half of a layer starts with, of its weights.
template <class Weights>
NormView first_norm_of(const Weights& weights, float eps) {
  NormView view = norm_view(weights.norm, eps);
  view.bias =
      weights.norm_bias ? weights.norm_bias->template data<float>() : nullptr;
  return view;
}

ResidualView view_of(const Residual& residual, float eps) {
  return {norm_view(residual.norm, eps), residual.scale};
}

AttentionView view_of(
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope* rope,
    const RopeAngles* angles,
    float eps) {
  AttentionView view{
      .norm = first_norm_of(weights, eps),
      .q = linear_view(weights.q),
      .k = linear_view(weights.k),
      .v = linear_view(weights.v),
      .o = linear_view(weights.o),
      .q_norm = norm_view(weights.q_norm, eps),
      .k_norm = norm_view(weights.k_norm, eps),
      .norms_all_heads = weights.q_norm &&
          weights.q_norm->shape(0) == weights.q.matrix.packed.rows,
      .has_gates = weights.has_gates,
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
    view.query_scales =
        angles->query_scales.empty() ? nullptr : angles->query_scales.data();
  }
  return view;
}

MlpView view_of(const MlpWeights& weights, float eps) {
  return {
      .norm = first_norm_of(weights, eps),
      .gate = linear_view(weights.gate),
      .up = weights.up ? linear_view(*weights.up) : LinearView{},
      .down = linear_view(weights.down),
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
    float soft_cap,
    const mx::array* norm_bias) {
  return computed_from(
      x,
      kernels,
      x.shape(0),
      head.packed.rows,
      [&kernels, &norm, &head, eps, soft_cap, norm_bias, tokens = x.shape(0)](
          const float* in, float* out) {
        NormView view = norm_view(norm, eps);
        view.bias = norm_bias == nullptr ? nullptr : norm_bias->data<float>();
        norm_and_head(
            kernels.context(),
            view,
            {&head.packed, nullptr},
            soft_cap,
            tokens,
            in,
            out);
      });
}

} // namespace ingle
