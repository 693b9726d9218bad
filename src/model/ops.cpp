#include "model/ops.h"

#include <mlx/fast.h>
#include <mlx/ops.h>

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

} // namespace

mx::array embed(std::span<const Row> rows, const Matrix& embedding) {
  std::vector<TokenId> ids;
  for (const Row& row : rows) {
    ids.insert(ids.end(), row.tokens.begin(), row.tokens.end());
  }
  return take_rows(
      embedding,
      mx::array(ids.data(), {static_cast<int>(ids.size())}, mx::int32));
}

mx::array norm_qkv_rope_append_attend(
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer,
    std::span<const Row> rows) {
  const mx::array normed = mx::fast::rms_norm(x, weights.norm, eps);
  const mx::array q = weights.q(normed);
  const mx::array k = weights.k(normed);
  const mx::array v = weights.v(normed);

  std::vector<mx::array> attended;
  attended.reserve(rows.size());
  int begin = 0;
  for (const Row& row : rows) {
    const int length = token_count(row);
    KvCache& cache = row.kv->layer(layer);
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

mx::array out_proj_residual(
    const mx::array& x,
    const mx::array& attended,
    const Linear& o) {
  return mx::add(x, o(attended));
}

mx::array
norm_mlp_residual(const mx::array& x, const MlpWeights& weights, float eps) {
  const mx::array normed = mx::fast::rms_norm(x, weights.norm, eps);
  const mx::array gate = weights.gate(normed);
  const mx::array activated = mx::multiply(gate, mx::sigmoid(gate));
  return mx::add(x, weights.down(mx::multiply(activated, weights.up(normed))));
}

std::optional<mx::array> norm_head(
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps,
    std::span<const Row> rows) {
  // Where logits are wanted, it is after the last tokens of a row.
  std::vector<mx::array> wanted;
  int end = 0;
  for (const Row& row : rows) {
    end += token_count(row);
    const auto count = static_cast<int>(logits_count(row));
    if (count > 0) {
      wanted.push_back(slice_tokens(x, end - count, count));
    }
  }
  if (wanted.empty()) {
    return std::nullopt;
  }
  const mx::array positions = wanted.size() == 1
      ? wanted.front()
      : mx::concatenate(std::move(wanted), 0);
  return mx::astype(
      multiply(mx::fast::rms_norm(positions, norm, eps), head), mx::float32);
}

} // namespace ingle
