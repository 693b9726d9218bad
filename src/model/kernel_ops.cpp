#include "model/kernel_ops.h"

#include <algorithm>

#include "cache/block_kv_cache.h"
#include "cache/recurrent_cache.h"
#include "model/kernel_compute.h"
#include "model/linear_views.h"

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
  return {norm_view(residual.norm, eps), residual.scale, residual.total};
}

AttentionView view_of(
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope* rope,
    const RopeAngles* angles,
    float eps,
    LinearViews& views) {
  AttentionView view{
      .norm = first_norm_of(weights, eps),
      .q = views.of(weights.q),
      .k = views.of(weights.k),
      .v = views.of(weights.v),
      .o = views.of(weights.o),
      .q_norm = norm_view(weights.q_norm, eps),
      .k_norm = norm_view(weights.k_norm, eps),
      .norms_all_heads = shape.heads > 1 && weights.q_norm &&
          weights.q_norm->shape(0) == weights.q.matrix.packed.rows,
      .v_norm = norm_view(weights.v_norm, eps),
      .has_gates = weights.has_gates,
      .sinks = weights.sinks ? weights.sinks->data<float>() : nullptr,
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

MlpView view_of(const MlpWeights& weights, float eps, LinearViews& views) {
  return {
      .norm = first_norm_of(weights, eps),
      .gate = views.of(weights.gate),
      .up = views.of(weights.up),
      .down = views.of(weights.down),
      .activation = weights.activation,
      .residual = view_of(weights.residual, eps)};
}

// all: [T, layers * width].
MlpView view_of(
    const LayerInputBlock& block,
    const mx::array& all,
    float eps,
    LinearViews& views) {
  MlpView view = view_of(block.mlp, eps, views);
  view.factors = all.data<float>() +
      block.layer * static_cast<size_t>(view.gate.matrix->rows);
  view.factors_stride = all.shape(1);
  return view;
}

BlockKvCache& cache_of(const Row& row, size_t layer) {
  return static_cast<BlockKvCache&>(row.kv->layer(layer));
}

RecurrentCache& state_of(const Row& row, size_t layer) {
  return static_cast<RecurrentCache&>(row.kv->layer(layer));
}

// Blocks one after the other, once.
class BlockRun {
 public:
  // Makes room for the step's tokens in the rows' caches.
  BlockRun(Step& step, int tokens, std::span<const Block> blocks, float eps)
      : kernels_(*step.kernels()),
        blocks_(blocks),
        eps_(eps),
        tokens_(tokens),
        rows_(step.rows().size()),
        layer_inputs_(step.layer_inputs()),
        views_(step.adapter_runs()) {
    attended_.reserve(blocks.size() * rows_);
    angles_.reserve(blocks.size());
    for (const Block& block : blocks) {
      if (const auto* attention = std::get_if<AttentionBlock>(&block)) {
        angles_.push_back(step.angles(attention->rope));
        extend(step, *attention);
      } else if (const auto* delta = std::get_if<GatedDeltaBlock>(&block)) {
        extend(step, *delta);
      }
    }
  }

  // For a run that is not now: keeps who owns what the rows' caches gave.
  void hold_caches(const Step& step) {
    for (const Block& block : blocks_) {
      for (const Row& row : step.rows()) {
        if (const auto* attention = std::get_if<AttentionBlock>(&block)) {
          buffers_.push_back(cache_of(row, attention->layer).buffer());
        } else if (const auto* delta = std::get_if<GatedDeltaBlock>(&block)) {
          for (auto& buffer : state_of(row, delta->layer).buffers()) {
            buffers_.push_back(std::move(buffer));
          }
        }
      }
    }
  }

  void operator()(const float* x, float* out) {
    for (size_t i = 0; i < blocks_.size(); x = out) {
      i += run(i, x, out);
    }
  }

 private:
  // Where the block makes no keys, those that do have made room already.
  void extend(const Step& step, const AttentionBlock& block) {
    for (const Row& row : step.rows()) {
      BlockKvCache& cache = cache_of(row, block.layer);
      const auto tokens = static_cast<int>(row.tokens.size());
      std::byte* blocks = cache.extend(block.weights.k ? tokens : 0);
      const int64_t position = cache.offset() + cache.pending() - tokens;
      attended_.push_back({tokens, position, blocks, cache.first_block()});
    }
  }
  void extend(const Step& step, const GatedDeltaBlock& block) {
    for (const Row& row : step.rows()) {
      const auto tokens = static_cast<int>(row.tokens.size());
      const auto [before, after] = state_of(row, block.layer).extend(tokens);
      moved_.push_back({tokens, before, after});
    }
  }

  // Gives how many blocks that were: attention and an MLP after it are one
  // region of the pool.
  size_t run(size_t i, const float* x, float* out) {
    views_.restart();
    if (const auto* attention = std::get_if<AttentionBlock>(&blocks_[i])) {
      const auto* mlp = i + 1 < blocks_.size()
          ? std::get_if<MlpWeights>(&blocks_[i + 1])
          : nullptr;
      return run(*attention, mlp, x, out);
    }
    KernelContext& context = kernels_.context();
    if (const auto* delta = std::get_if<GatedDeltaBlock>(&blocks_[i])) {
      const auto rows = std::span(moved_).subspan(next_moved_, rows_);
      next_moved_ += rows_;
      gated_delta_and_add(
          context,
          kernel_view(delta->weights, delta->shape, eps_, views_),
          rows,
          x,
          out);
    } else if (const auto* mlp = std::get_if<MlpWeights>(&blocks_[i])) {
      mlp_and_add(context, view_of(*mlp, eps_, views_), tokens_, x, out);
    } else if (const auto* own = std::get_if<LayerInputBlock>(&blocks_[i])) {
      mlp_and_add(
          context,
          view_of(*own, *layer_inputs_, eps_, views_),
          tokens_,
          x,
          out);
    } else {
      const auto& moe = std::get<MoeWeights>(blocks_[i]);
      const std::optional<MlpView> beside = moe.beside
          ? std::optional(view_of(*moe.beside, eps_, views_))
          : std::nullopt;
      moe_and_add(
          context,
          kernel_view(moe, eps_, beside ? &*beside : nullptr),
          tokens_,
          x,
          out);
    }
    return 1;
  }

  // `mlp`: null if there is none.
  size_t run(
      const AttentionBlock& block,
      const MlpWeights* mlp,
      const float* x,
      float* out) {
    KernelContext& context = kernels_.context();
    const auto rows = std::span(attended_).subspan(next_ * rows_, rows_);
    const AttentionView view = view_of(
        block.weights,
        block.shape,
        block.rope,
        angles_[next_].get(),
        eps_,
        views_);
    ++next_;
    if (mlp == nullptr) {
      attend_and_add(context, view, rows, x, out);
      return 1;
    }
    decoder_layer(context, view, view_of(*mlp, eps_, views_), rows, x, out);
    return 2;
  }

  CpuKernels& kernels_;
  std::span<const Block> blocks_;
  float eps_;
  int tokens_; // of x: where no block looks back, maybe not all of the step's
  size_t rows_;
  std::optional<mx::array> layer_inputs_;
  LinearViews views_;
  // Of each block of attention, one after the other, its rows'.
  std::vector<AttentionRow> attended_;
  std::vector<std::shared_ptr<const RopeAngles>> angles_; // its own
  std::vector<GatedDeltaRow> moved_; // of gated delta nets
  size_t next_ = 0; // block of attention
  size_t next_moved_ = 0; // row
  std::vector<std::shared_ptr<const void>> buffers_;
};

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

mx::array kernel_run_blocks(
    Step& step,
    const mx::array& x,
    std::span<const Block> blocks,
    float eps) {
  BlockRun run(step, x.shape(0), blocks, eps);
  if (is_ready(x)) {
    return computed(*step.kernels(), x.shape(0), x.shape(1), [&](float* out) {
      run(x.data<float>(), out);
    });
  }
  run.hold_caches(step);
  mx::array out = computed_later(x, x.shape(0), x.shape(1), std::move(run));
  for (const Row& row : step.rows()) {
    row.kv->set_writer(out);
  }
  return out;
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
