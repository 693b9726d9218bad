#include "model/ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <mlx/fast.h>
#include <mlx/ops.h>

#include "cache/array_kv_cache.h"
#include "cache/block_kv_cache.h"
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

// A number that leaves the other's type as it is.
mx::array scalar(float value, const mx::array& other) {
  return mx::array(value, other.dtype());
}

mx::array
norm_if(const std::optional<mx::array>& norm, const mx::array& x, float eps) {
  return norm ? mx::fast::rms_norm(x, *norm, eps) : x;
}

// What a half of a layer starts with, of its weights.
template <class Weights>
mx::array norm_first(const Weights& weights, const mx::array& x, float eps) {
  return weights.norm_bias
      ? mx::fast::layer_norm(x, weights.norm, weights.norm_bias, eps)
      : norm_if(weights.norm, x, eps);
}

// [L, width] -> normed [1, heads, L, head_dim]. The norm is one of each head or
// of all together.
mx::array norm_and_split(
    const mx::array& x,
    const std::optional<mx::array>& norm,
    float eps,
    int heads,
    int head_dim) {
  if (norm && norm->shape(0) == x.shape(1)) {
    return split_heads(mx::fast::rms_norm(x, *norm, eps), heads, head_dim);
  }
  return norm_if(norm, split_heads(x, heads, head_dim), eps);
}

mx::array times(const mx::array& x, float scale) {
  return scale == 1 ? x : mx::multiply(x, scalar(scale, x));
}

mx::array
norm_and_scale(const mx::array& y, const Residual& residual, float eps) {
  return times(norm_if(residual.norm, y, eps), residual.scale);
}

mx::array activate(Activation activation, const mx::array& x) {
  if (activation == Activation::kSilu) {
    return mx::multiply(x, mx::sigmoid(x));
  }
  if (activation == Activation::kClampedSwiglu) {
    const mx::array low = mx::minimum(x, scalar(kSwigluLimit, x));
    return mx::multiply(
        low, mx::sigmoid(mx::multiply(scalar(kSwigluSlope, x), low)));
  }
  if (activation == Activation::kGelu) {
    const mx::array erf =
        mx::erf(mx::divide(x, scalar(std::numbers::sqrt2_v<float>, x)));
    return mx::divide(
        mx::multiply(x, mx::add(scalar(1, x), erf)), scalar(2, x));
  }
  const mx::array cubed = mx::power(x, scalar(3, x));
  const mx::array inner = mx::multiply(
      scalar(std::sqrt(2 / std::numbers::pi_v<float>), x),
      mx::add(x, mx::multiply(scalar(0.044715f, x), cubed)));
  return mx::multiply(
      mx::multiply(scalar(0.5f, x), x), mx::add(scalar(1, x), mx::tanh(inner)));
}

// What q gives -> queries and gates, [T, heads * head_dim] each.
std::pair<mx::array, std::optional<mx::array>> split_gates(
    const AttentionWeights& weights,
    const mx::array& q,
    const AttentionShape& shape) {
  if (!weights.has_gates) {
    return {q, std::nullopt};
  }
  const int tokens = q.shape(0);
  const auto parts = mx::split(
      mx::reshape(q, {tokens, shape.heads, 2 * shape.head_dim}), 2, -1);
  const mx::Shape flat = {tokens, shape.heads * shape.head_dim};
  return {mx::reshape(parts[0], flat), mx::reshape(parts[1], flat)};
}

// Turned queries [1, heads, L, head_dim], the first at position `offset`, times
// what their positions make of them.
mx::array
scale_queries(const mx::array& queries, const Rope* rope, int64_t offset) {
  if (rope == nullptr || !rope->scales_queries()) {
    return queries;
  }
  const int length = queries.shape(2);
  std::vector<float> scales;
  for (int i = 0; i < length; ++i) {
    scales.push_back(rope->query_scale(offset + i));
  }
  const mx::array all(scales.data(), {1, 1, length, 1}, mx::float32);
  return mx::multiply(queries, mx::astype(all, queries.dtype()));
}

// What each token attends to: [T, heads * head_dim].
mx::array attend_rows(
    const Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope* rope,
    float eps,
    size_t layer) {
  const mx::array normed = norm_first(weights, x, eps);
  const auto [q, gates] =
      split_gates(weights, apply(step, weights.q, normed), shape);
  const std::optional<mx::array> k =
      weights.k ? std::optional(apply(step, *weights.k, normed)) : std::nullopt;
  const std::optional<mx::array> v =
      weights.v ? std::optional(apply(step, *weights.v, normed)) : k;

  std::vector<mx::array> attended;
  attended.reserve(step.rows().size());
  int begin = 0;
  for (const Row& row : step.rows()) {
    const int length = token_count(row);
    auto& cache = static_cast<ArrayKvCache&>(row.kv->layer(layer));
    const int64_t offset = cache.offset() + cache.pending() - (k ? 0 : length);
    const auto heads_of = [&](const mx::array& all,
                              const std::optional<mx::array>& norm,
                              int heads) {
      return norm_and_split(
          slice_tokens(all, begin, length), norm, eps, heads, shape.head_dim);
    };
    const auto turned = [&](const mx::array& heads) {
      return rope == nullptr ? heads : (*rope)(heads, offset);
    };
    const mx::array queries = scale_queries(
        turned(heads_of(q, weights.q_norm, shape.heads)), rope, offset);
    const KvView kv = k
        ? cache.append(
              turned(heads_of(*k, weights.k_norm, shape.kv_heads)),
              heads_of(*v, weights.v_norm, shape.kv_heads))
        : cache.view();
    attended.push_back(
        merge_heads(attend(queries, kv, shape, offset, weights.sinks)));
    begin += length;
  }
  const mx::array all = attended.size() == 1
      ? attended.front()
      : mx::concatenate(std::move(attended), 0);
  return gates ? mx::multiply(all, mx::sigmoid(*gates)) : all;
}

} // namespace

namespace {

// Neighbours with the same ones are one run.
std::vector<AdapterRun> adapter_runs_of(std::span<const Row> rows) {
  std::vector<AdapterRun> runs;
  int first = 0;
  for (const Row& row : rows) {
    const int tokens = token_count(row);
    const bool goes_on = !runs.empty() &&
        runs.back().first + runs.back().tokens == first &&
        runs.back().adapters == row.adapters;
    if (goes_on) {
      runs.back().tokens += tokens;
    } else if (row.adapters != nullptr) {
      runs.push_back({first, tokens, row.adapters});
    }
    first += tokens;
  }
  return runs;
}

} // namespace

Step::Step(std::span<const Row> rows, CpuKernels* kernels)
    : rows_(rows), kernels_(kernels), adapter_runs_(adapter_runs_of(rows)) {}

Step Step::wanted() const {
  Step last({}, kernels_);
  for (const Row& row : rows_) {
    if (const size_t count = logits_count(row); count > 0) {
      last.wanted_.push_back(
          {row.tokens.last(count), row.kv, row.logits, row.adapters});
      last.skipped_.push_back(static_cast<int64_t>(row.tokens.size() - count));
    }
  }
  last.rows_ = last.wanted_;
  last.adapter_runs_ = adapter_runs_of(last.rows_);
  return last;
}

std::shared_ptr<const RopeAngles> Step::angles(const Rope* rope) {
  if (rope == nullptr) {
    return nullptr;
  }
  for (const auto& [whose, angles] : angles_) {
    if (whose == rope) {
      return angles;
    }
  }
  auto angles = std::make_shared<RopeAngles>();
  for (size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    const int64_t first =
        row.kv->offset() + (skipped_.empty() ? 0 : skipped_[r]);
    for (int i = 0; i < token_count(row); ++i) {
      const int64_t position = first + i;
      rope->add_angles(position, angles->cosines, angles->sines);
      if (rope->scales_queries()) {
        angles->query_scales.push_back(rope->query_scale(position));
      }
    }
  }
  angles_.emplace_back(rope, angles);
  return angles;
}

mx::array pass_gate(
    Activation activation,
    const mx::array& gate,
    const std::optional<mx::array>& up) {
  const mx::array activated = activate(activation, gate);
  if (!up) {
    return activated;
  }
  if (activation != Activation::kClampedSwiglu) {
    return mx::multiply(activated, *up);
  }
  const mx::array seen =
      mx::clip(*up, scalar(-kSwigluLimit, *up), scalar(kSwigluLimit, *up));
  return mx::multiply(activated, mx::add(seen, scalar(1, seen)));
}

mx::array apply(const Step& step, const Linear& linear, const mx::array& x) {
  const mx::array y = linear(x);
  std::vector<mx::array> parts;
  int end = 0; // of the tokens in `parts`
  for (const AdapterRun& run : step.adapter_runs()) {
    const auto adapters = linear.number
        ? run.adapters->of_linear(*linear.number)
        : std::span<const LowRank>();
    if (adapters.empty()) {
      continue;
    }
    if (run.first > end) {
      parts.push_back(slice_tokens(y, end, run.first - end));
    }
    const mx::array own = slice_tokens(x, run.first, run.tokens);
    parts.push_back(slice_tokens(y, run.first, run.tokens));
    for (const LowRank& each : adapters) {
      const mx::array a(each.a, {each.rank, x.shape(1)}, mx::float32);
      const mx::array b(each.b, {each.rank, y.shape(1)}, mx::float32);
      const mx::array added = mx::matmul(mx::matmul(own, mx::transpose(a)), b);
      parts.back() = mx::add(
          parts.back(), mx::astype(times(added, each.scale), y.dtype()));
    }
    end = run.first + run.tokens;
  }
  if (parts.empty()) {
    return y;
  }
  if (end < y.shape(0)) {
    parts.push_back(slice_tokens(y, end, y.shape(0) - end));
  }
  return parts.size() == 1 ? parts.front()
                           : mx::concatenate(std::move(parts), 0);
}

std::vector<TokenId> token_ids(const Step& step) {
  std::vector<TokenId> ids;
  for (const Row& row : step.rows()) {
    ids.insert(ids.end(), row.tokens.begin(), row.tokens.end());
  }
  return ids;
}

mx::array embed(const Step& step, const Matrix& embedding, float scale) {
  const std::vector<TokenId> ids = token_ids(step);
  if (step.kernels() != nullptr) {
    return kernel_embed(*step.kernels(), ids, embedding, scale);
  }
  const mx::array rows = take_rows(
      embedding,
      mx::array(ids.data(), {static_cast<int>(ids.size())}, mx::int32));
  return scale == 1 ? rows : mx::multiply(rows, scalar(scale, rows));
}

mx::array attend_and_add(
    Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope* rope,
    float eps,
    size_t layer) {
  return add_residual(
      x,
      apply(
          step,
          weights.o,
          attend_rows(step, x, weights, shape, rope, eps, layer)),
      weights.residual,
      eps);
}

mx::array mlp(
    const Step& step,
    const mx::array& x,
    const MlpWeights& weights,
    float eps,
    const std::optional<mx::array>& factors) {
  const mx::array normed = norm_first(weights, x, eps);
  const mx::array inner = pass_gate(
      weights.activation,
      apply(step, weights.gate, normed),
      weights.up ? std::optional(apply(step, *weights.up, normed)) : factors);
  return norm_and_scale(
      apply(step, weights.down, inner), weights.residual, eps);
}

mx::array mlp_and_add(
    const Step& step,
    const mx::array& x,
    const MlpWeights& weights,
    float eps,
    const std::optional<mx::array>& factors) {
  const mx::array added = mlp(step, x, weights, eps, factors);
  return times(mx::add(x, added), weights.residual.total);
}

mx::array add_residual(
    const mx::array& x,
    const mx::array& y,
    const Residual& residual,
    float eps) {
  return times(mx::add(x, norm_and_scale(y, residual, eps)), residual.total);
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
    float eps,
    float soft_cap,
    const mx::array* norm_bias) {
  if (step.kernels() != nullptr) {
    return kernel_norm_and_head(
        *step.kernels(), x, norm, head, eps, soft_cap, norm_bias);
  }
  const mx::array normed = norm_bias != nullptr
      ? mx::fast::layer_norm(x, norm, *norm_bias, eps)
      : mx::fast::rms_norm(x, norm, eps);
  const mx::array logits = mx::astype(multiply(normed, head), mx::float32);
  return soft_cap > 0 ? soften(logits, soft_cap) : logits;
}

std::unique_ptr<KvCache>
make_kv_cache(const AttentionShape& shape, mx::Dtype dtype, bool for_kernels) {
  if (for_kernels) {
    const KvBlockShape block = shape.kv
        ? KvBlockShape{shape.head_dim, shape.kv->bits, shape.kv->group_size}
        : KvBlockShape{shape.head_dim};
    return std::make_unique<BlockKvCache>(shape.kv_heads, block, shape.window);
  }
  return std::make_unique<ArrayKvCache>(KvLayerShape{
      shape.kv_heads, shape.head_dim, dtype, shape.kv, shape.window});
}

} // namespace ingle
