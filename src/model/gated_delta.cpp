#include "model/gated_delta.h"

#include <cmath>

#include <mlx/fast.h>
#include <mlx/ops.h>

#include "cache/array_recurrent_cache.h"
#include "cache/recurrent_cache.h"
#include "model/kernel_compute.h"

namespace ingle {
namespace {

// x: [n, ...] -> [begin, begin + count) of its first axis.
mx::array slice_first(const mx::array& x, int begin, int count) {
  mx::Shape start(x.ndim(), 0);
  mx::Shape stop = x.shape();
  start[0] = begin;
  stop[0] = begin + count;
  return mx::slice(x, start, stop);
}

mx::array silu(const mx::array& x) {
  return mx::multiply(x, mx::sigmoid(x));
}

mx::array softplus(const mx::array& x) {
  return mx::logaddexp(x, mx::array(0.0f, x.dtype()));
}

// What the tokens of one row bring, after the projections: [L, ...].
struct Projected {
  mx::array qkv; // [L, channels]
  mx::array z; // [L, value_width]
  mx::array b; // [L, value_heads]
  mx::array a;
};

// What they bring to the delta rule.
struct DeltaInputs {
  mx::array q; // [L, value_heads, key_dim]
  mx::array k;
  mx::array v; // [L, value_heads, value_dim]
  mx::array decay; // [L, value_heads] in f32
  mx::array beta;
};

// seen: [taps - 1 + L, channels] -> [L, channels].
mx::array convolve(const mx::array& seen, const mx::array& weight) {
  const int taps = weight.shape(0);
  const int length = seen.shape(0) - (taps - 1);
  mx::array sum = mx::array(0.0f, seen.dtype());
  for (int j = 0; j < taps; ++j) {
    sum = mx::add(
        sum,
        mx::multiply(slice_first(seen, j, length), slice_first(weight, j, 1)));
  }
  return silu(sum);
}

// [L, key_width] -> unit vectors times `length`, for each value head:
// [L, value_heads, key_dim].
mx::array
unit_heads(const mx::array& x, const GatedDeltaShape& shape, float length) {
  const auto dim = static_cast<float>(shape.key_dim);
  const mx::array heads =
      mx::reshape(x, {x.shape(0), shape.key_heads, shape.key_dim});
  // A norm by the mean of squares, with its eps, is sqrt(dim) times too long.
  const mx::array normed =
      mx::fast::rms_norm(heads, std::nullopt, kGatedDeltaUnitEps / dim);
  return mx::repeat(
      mx::multiply(normed, mx::array(length / std::sqrt(dim), x.dtype())),
      shape.value_heads / shape.key_heads,
      1);
}

DeltaInputs prepare(
    const Projected& row,
    const mx::array& seen,
    const GatedDeltaWeights& weights,
    const GatedDeltaShape& shape) {
  const int length = row.qkv.shape(0);
  const auto parts = mx::split(
      convolve(seen, weights.conv),
      mx::Shape{shape.key_width(), 2 * shape.key_width()},
      1);
  const mx::array a = mx::add(row.a, weights.decay_bias);
  return {
      unit_heads(
          parts[0], shape, 1 / std::sqrt(static_cast<float>(shape.key_dim))),
      unit_heads(parts[1], shape, 1),
      mx::reshape(parts[2], {length, shape.value_heads, shape.value_dim}),
      mx::exp(mx::negative(mx::multiply(weights.decay_rate, softplus(a)))),
      mx::sigmoid(row.b)};
}

// One token after the other: [L, value_heads, value_dim]. Moves `state`
// ([value_heads, value_dim, key_dim]) on.
mx::array run_delta_rule(const DeltaInputs& inputs, mx::array& state) {
  std::vector<mx::array> read;
  for (int t = 0; t < inputs.q.shape(0); ++t) {
    const auto token = [t](const mx::array& x) {
      return mx::squeeze(slice_first(x, t, 1), 0);
    };
    const mx::array key = mx::expand_dims(token(inputs.k), 1);
    const mx::array decay = mx::expand_dims(token(inputs.decay), {1, 2});
    state = mx::multiply(state, decay);
    const mx::array found = mx::sum(mx::multiply(state, key), -1);
    const mx::array change = mx::multiply(
        mx::subtract(token(inputs.v), found),
        mx::expand_dims(token(inputs.beta), 1));
    state = mx::add(state, mx::multiply(mx::expand_dims(change, 2), key));
    const mx::array query = mx::expand_dims(token(inputs.q), 1);
    read.push_back(mx::sum(mx::multiply(state, query), -1));
  }
  return mx::astype(mx::stack(read), inputs.q.dtype());
}

// What the heads of one row read, normed and gated: [L, value_width].
mx::array run_row(
    const Projected& row,
    ArrayRecurrentCache& cache,
    const GatedDeltaWeights& weights,
    const GatedDeltaShape& shape,
    float eps) {
  const int length = row.qkv.shape(0);
  RecurrentArrays state = cache.state();
  const mx::array seen = mx::concatenate({state.conv, row.qkv}, 0);
  const mx::array read =
      run_delta_rule(prepare(row, seen, weights, shape), state.heads);
  // Without the rest of what it is cut from.
  state.conv = mx::contiguous(slice_first(seen, length, shape.taps - 1));
  cache.advance(std::move(state), length);
  const mx::array normed =
      mx::astype(mx::fast::rms_norm(read, weights.head_norm, eps), mx::float32);
  const mx::array gates = silu(mx::astype(row.z, mx::float32));
  return mx::astype(
      mx::multiply(gates, mx::reshape(normed, {length, shape.value_width()})),
      row.qkv.dtype());
}

} // namespace

mx::array gated_delta_and_add(
    Step& step,
    const mx::array& x,
    const GatedDeltaWeights& weights,
    const GatedDeltaShape& shape,
    float eps,
    size_t layer) {
  const mx::array normed = mx::fast::rms_norm(x, weights.norm, eps);
  const Projected all = {
      apply(step, weights.qkv, normed),
      apply(step, weights.z, normed),
      apply(step, weights.b, normed),
      apply(step, weights.a, normed)};
  std::vector<mx::array> rows;
  int begin = 0;
  for (const Row& row : step.rows()) {
    const auto length = static_cast<int>(row.tokens.size());
    const auto own = [&](const mx::array& each) {
      return slice_first(each, begin, length);
    };
    rows.push_back(run_row(
        {own(all.qkv), own(all.z), own(all.b), own(all.a)},
        static_cast<ArrayRecurrentCache&>(row.kv->layer(layer)),
        weights,
        shape,
        eps));
    begin += length;
  }
  const mx::array read = mx::concatenate(std::move(rows), 0);
  return mx::add(x, apply(step, weights.out, read));
}

GatedDeltaView kernel_view(
    const GatedDeltaWeights& weights,
    const GatedDeltaShape& shape,
    float eps,
    LinearViews& views) {
  return {
      .norm = norm_view(weights.norm, eps),
      .qkv = views.of(weights.qkv),
      .z = views.of(weights.z),
      .b = views.of(weights.b),
      .a = views.of(weights.a),
      .out = views.of(weights.out),
      .conv = weights.conv.data<float>(),
      .decay_rate = weights.decay_rate.data<float>(),
      .decay_bias = weights.decay_bias.data<float>(),
      .head_norm = norm_view(weights.head_norm, eps),
      .shape = shape};
}

std::unique_ptr<KvCache> make_recurrent_cache(
    const GatedDeltaShape& shape,
    mx::Dtype dtype,
    bool for_kernels) {
  if (for_kernels) {
    return std::make_unique<RecurrentCache>(shape.state_bytes());
  }
  return std::make_unique<ArrayRecurrentCache>(RecurrentShape{
      shape.taps - 1,
      shape.channels(),
      shape.value_heads,
      shape.value_dim,
      shape.key_dim,
      dtype});
}

} // namespace ingle
