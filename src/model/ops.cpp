#include "model/ops.h"

#include <mlx/fast.h>
#include <mlx/ops.h>

#include "cache/block_kv_cache.h"
#include "cache/plain_kv_cache.h"
#include "model/kernel_ops.h"

namespace ingle {
namespace {

int token_count(const Row& row) {
  return static_cast<int>(row.tokens.size());
}

// x: [T, width] -> rows [begin, begin + length).
mx::array slice_tokens(const mx::array& x, int begin, int length) {
  return mx::slice(x, {begin, 0}, {begin + length, x.shape(1)});
}

// [L, heads * head_dim] -> [1, heads, L, head_dim].
mx::array split_heads(const mx::array& x, int heads, int head_dim) {
  return mx::transpose(
      mx::reshape(x, {1, x.shape(0), heads, head_dim}), {0, 2, 1, 3});
}

// [1, heads, L, head_dim] -> [L, heads * head_dim].
mx::array merge_heads(const mx::array& x) {
  return mx::reshape(
      mx::transpose(x, {0, 2, 1, 3}), {x.shape(2), x.shape(1) * x.shape(3)});
}

// What each token attends to: [T, heads * head_dim].
mx::array attend(
    const Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer) {
  const mx::array normed = mx::fast::rms_norm(x, weights.norm, eps);
  const mx::array q = weights.q(normed);
  const mx::array k = weights.k(normed);
  const mx::array v = weights.v(normed);

  std::vector<mx::array> attended;
  attended.reserve(step.rows().size());
  int begin = 0;
  for (const Row& row : step.rows()) {
    const int length = token_count(row);
    auto& cache = static_cast<ArrayKvCache&>(row.kv->layer(layer));
    const int64_t offset = cache.offset() + cache.pending();
    const auto heads_of = [&](const mx::array& all, int heads) {
      return split_heads(
          slice_tokens(all, begin, length), heads, shape.head_dim);
    };
    const mx::array queries = rope(heads_of(q, shape.heads), offset);
    const KvView kv = cache.append(
        rope(heads_of(k, shape.kv_heads), offset), heads_of(v, shape.kv_heads));
    attended.push_back(merge_heads(mx::fast::scaled_dot_product_attention(
        queries, kv.keys, kv.values, shape.scale, length > 1 ? "causal" : "")));
    begin += length;
  }
  return attended.size() == 1 ? attended.front()
                              : mx::concatenate(std::move(attended), 0);
}

} // namespace

std::shared_ptr<const RopeAngles> Step::angles(const Rope& rope) {
  if (rope_ == &rope) {
    return angles_;
  }
  auto angles = std::make_shared<RopeAngles>();
  for (const Row& row : rows_) {
    for (int i = 0; i < token_count(row); ++i) {
      rope.add_angles(row.kv->offset() + i, angles->cosines, angles->sines);
    }
  }
  rope_ = &rope;
  angles_ = angles;
  return angles_;
}

mx::array embed(const Step& step, const Matrix& embedding) {
  std::vector<TokenId> ids;
  for (const Row& row : step.rows()) {
    ids.insert(ids.end(), row.tokens.begin(), row.tokens.end());
  }
  if (step.kernels() != nullptr) {
    return kernel_embed(*step.kernels(), ids, embedding);
  }
  return take_rows(
      embedding,
      mx::array(ids.data(), {static_cast<int>(ids.size())}, mx::int32));
}

mx::array attend_and_add(
    Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer) {
  if (step.kernels() != nullptr) {
    return kernel_attend_and_add(step, x, weights, shape, rope, eps, layer);
  }
  return mx::add(
      x, weights.o(attend(step, x, weights, shape, rope, eps, layer)));
}

mx::array mlp_and_add(
    const Step& step,
    const mx::array& x,
    const MlpWeights& weights,
    float eps) {
  if (step.kernels() != nullptr) {
    return kernel_mlp_and_add(*step.kernels(), x, weights, eps);
  }
  const mx::array normed = mx::fast::rms_norm(x, weights.norm, eps);
  const mx::array gate = weights.gate(normed);
  const mx::array activated = mx::multiply(gate, mx::sigmoid(gate));
  return mx::add(x, weights.down(mx::multiply(activated, weights.up(normed))));
}

mx::array decoder_layer(
    Step& step,
    const mx::array& x,
    const LayerWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer) {
  if (step.kernels() != nullptr) {
    return kernel_decoder_layer(step, x, weights, shape, rope, eps, layer);
  }
  const mx::array attended =
      attend_and_add(step, x, weights.attention, shape, rope, eps, layer);
  return mlp_and_add(step, attended, weights.mlp, eps);
}

std::optional<mx::array> take_wanted(const Step& step, const mx::array& x) {
  // Where logits are wanted, it is after the last tokens of a row.
  std::vector<int> wanted;
  int end = 0;
  for (const Row& row : step.rows()) {
    end += token_count(row);
    const auto count = static_cast<int>(logits_count(row));
    for (int i = end - count; i < end; ++i) {
      wanted.push_back(i);
    }
  }
  if (wanted.empty()) {
    return std::nullopt;
  }
  if (std::ssize(wanted) == end) {
    return x;
  }
  if (step.kernels() != nullptr) {
    return kernel_take_rows(*step.kernels(), x, std::move(wanted));
  }
  return mx::take(
      x,
      mx::array(wanted.data(), {static_cast<int>(wanted.size())}, mx::int32),
      0);
}

mx::array norm_and_head(
    const Step& step,
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps) {
  if (step.kernels() != nullptr) {
    return kernel_norm_and_head(*step.kernels(), x, norm, head, eps);
  }
  return mx::astype(
      multiply(mx::fast::rms_norm(x, norm, eps), head), mx::float32);
}

std::unique_ptr<KvCache> make_kv_cache(
    const AttentionShape& shape,
    mx::Dtype dtype,
    const CpuKernels* kernels) {
  if (kernels != nullptr) {
    return std::make_unique<BlockKvCache>(
        shape.kv_heads, KvBlockShape{shape.head_dim});
  }
  return std::make_unique<PlainKvCache>(
      KvLayerShape{shape.kv_heads, shape.head_dim, dtype});
}

} // namespace ingle
