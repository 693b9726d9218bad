#include "model/attention.h"

#include <algorithm>

#include <mlx/fast.h>
#include <mlx/ops.h>

#include "kernels/kernel_set.h"

namespace ingle {
namespace {

// A long piece of a prompt looks at quantised keys by so many at a time.
constexpr int kTile = 512;

// A number that leaves the other's type as it is.
mx::array scalar(float value, const mx::array& other) {
  return mx::array(value, other.dtype());
}

mx::array slice_positions(const mx::array& x, int begin, int end) {
  mx::Shape stop = x.shape();
  stop[2] = end;
  return mx::slice(x, {0, 0, begin, 0}, stop);
}

// Of the positions that the cache holds, [begin, end).
KvRows slice_rows(const KvRows& x, int begin, int end) {
  const auto part = [&](const std::optional<mx::array>& all) {
    return all ? std::optional(slice_positions(*all, begin, end))
               : std::nullopt;
  };
  return {slice_positions(x.rows, begin, end), part(x.scales), part(x.biases)};
}

// Queries [1, H, L, D] that share keys and values side by side:
// [1, kv_heads, H / kv_heads, L, D].
mx::array group_heads(const mx::array& x, const AttentionShape& shape) {
  return mx::reshape(
      x,
      {1,
       shape.kv_heads,
       shape.heads / shape.kv_heads,
       x.shape(2),
       x.shape(3)});
}

// x times the rows, or their transpose.
mx::array multiply_rows(
    const mx::array& x,
    const KvRows& by,
    const AttentionShape& shape,
    bool transpose) {
  const mx::array rows = mx::expand_dims(by.rows, 2);
  if (!shape.kv) {
    return mx::matmul(x, transpose ? mx::swapaxes(rows, -1, -2) : rows);
  }
  return mx::quantized_matmul(
      x,
      rows,
      mx::expand_dims(*by.scales, 2),
      mx::expand_dims(*by.biases, 2),
      transpose,
      shape.kv->group_size,
      shape.kv->bits);
}

// [1, kv_heads, H / kv_heads, L, keys]: what is not seen is as small as a
// number can be.
mx::array scores_of(
    const mx::array& grouped,
    const KvRows& keys,
    const AttentionShape& shape,
    const mx::array& mask) {
  const mx::array scores = multiply_rows(
      mx::multiply(grouped, scalar(shape.scale, grouped)), keys, shape, true);
  return mx::where(
      mask,
      shape.soft_cap > 0 ? soften(scores, shape.soft_cap) : scores,
      scalar(kUnseen, scores));
}

// [H] in the queries' type.
std::optional<mx::array> sinks_like(
    const mx::array& queries,
    const std::optional<mx::array>& sinks) {
  return sinks ? std::optional(mx::astype(*sinks, queries.dtype()))
               : std::nullopt;
}

// The same beside the scores: [1, kv_heads, H / kv_heads, L, 1].
mx::array sink_scores(
    const mx::array& sinks,
    const mx::array& queries,
    const AttentionShape& shape) {
  const int group = shape.heads / shape.kv_heads;
  return mx::broadcast_to(
      mx::reshape(
          *sinks_like(queries, sinks), {1, shape.kv_heads, group, 1, 1}),
      {1, shape.kv_heads, group, queries.shape(2), 1});
}

// Over the last axis; the sinks' share is nobody's.
mx::array softmax(
    const mx::array& scores,
    const std::optional<mx::array>& sinks) {
  const std::vector<int> axis = {-1};
  if (!sinks) {
    return mx::softmax(scores, axis, true);
  }
  const mx::array all =
      mx::softmax(mx::concatenate({scores, *sinks}, -1), axis, true);
  return mx::slice(all, mx::Shape(5, 0), scores.shape());
}

// The scores are there in full.
mx::array attend_in_full(
    const mx::array& queries,
    const KvView& kv,
    const AttentionShape& shape,
    const mx::array& mask,
    const std::optional<mx::array>& sinks) {
  const mx::array weights = softmax(
      scores_of(group_heads(queries, shape), kv.keys, shape, mask),
      sinks ? std::optional(sink_scores(*sinks, queries, shape))
            : std::nullopt);
  return mx::reshape(
      multiply_rows(weights, kv.values, shape, false), queries.shape());
}

} // namespace

mx::array soften(const mx::array& x, float cap) {
  return mx::multiply(mx::tanh(mx::divide(x, scalar(cap, x))), scalar(cap, x));
}

mx::array attention_mask(
    int64_t offset,
    int length,
    int64_t begin,
    int keys,
    int window) {
  const auto positions = [](int64_t first, int count, mx::Shape shape) {
    return mx::reshape(
        mx::arange(static_cast<int>(first), static_cast<int>(first) + count),
        std::move(shape));
  };
  const mx::array rows = positions(offset, length, {length, 1});
  const mx::array columns = positions(begin, keys, {1, keys});
  const mx::array seen = mx::less_equal(columns, rows);
  return window == 0
      ? seen
      : mx::logical_and(
            seen, mx::greater(columns, mx::subtract(rows, mx::array(window))));
}

mx::array attend(
    const mx::array& queries,
    const KvView& kv,
    const AttentionShape& shape,
    int64_t offset,
    const std::optional<mx::array>& sinks) {
  const int length = queries.shape(2);
  const int64_t end = kv.begin + kv.keys.rows.shape(2);
  const bool all_see_all = shape.window == 0 || end <= shape.window;
  if (all_see_all && !shape.kv && shape.soft_cap == 0) {
    return mx::fast::scaled_dot_product_attention(
        queries,
        kv.keys.rows,
        kv.values.rows,
        shape.scale,
        length > 1 ? "causal" : "",
        {},
        sinks_like(queries, sinks));
  }
  if (shape.kv && shape.window == 0 && shape.soft_cap == 0 && length > 1 &&
      end > kTile) {
    return attend_in_tiles(queries, kv, shape, offset, kTile, sinks);
  }
  const int64_t begin = shape.window == 0
      ? kv.begin
      : std::max(kv.begin, offset + 1 - shape.window);
  const auto seen = [&](const KvRows& x) {
    return slice_rows(
        x,
        static_cast<int>(begin - kv.begin),
        static_cast<int>(end - kv.begin));
  };
  const KvView near{seen(kv.keys), seen(kv.values), begin};
  const mx::array mask = attention_mask(
      offset, length, begin, static_cast<int>(end - begin), shape.window);
  if (shape.kv || shape.soft_cap > 0) {
    return attend_in_full(queries, near, shape, mask, sinks);
  }
  return mx::fast::scaled_dot_product_attention(
      queries,
      near.keys.rows,
      near.values.rows,
      shape.scale,
      "",
      mask,
      sinks_like(queries, sinks));
}

mx::array attend_in_tiles(
    const mx::array& queries,
    const KvView& kv,
    const AttentionShape& shape,
    int64_t offset,
    int tile,
    const std::optional<mx::array>& sinks) {
  const int length = queries.shape(2);
  const int count = kv.keys.rows.shape(2);
  const mx::array grouped = group_heads(queries, shape);
  std::optional<mx::array> max; // [1, kv_heads, H / kv_heads, L, 1], as sum
  std::optional<mx::array> sum;
  std::optional<mx::array> total; // of values, by their weights: [..., D]
  if (sinks) {
    max = sink_scores(*sinks, queries, shape);
    sum = mx::ones_like(*max);
    total = mx::zeros_like(grouped);
  }
  for (int begin = 0; begin < count; begin += tile) {
    const int end = std::min(count, begin + tile);
    const mx::array scores = scores_of(
        grouped,
        slice_rows(kv.keys, begin, end),
        shape,
        attention_mask(offset, length, kv.begin + begin, end - begin, 0));
    const mx::array highest = mx::max(scores, -1, true);
    const mx::array next = max ? mx::maximum(*max, highest) : highest;
    const mx::array weights = mx::exp(mx::subtract(scores, next));
    const mx::array weight = mx::sum(weights, -1, true);
    const mx::array values =
        multiply_rows(weights, slice_rows(kv.values, begin, end), shape, false);
    if (max) {
      const mx::array kept = mx::exp(mx::subtract(*max, next));
      sum = mx::add(mx::multiply(*sum, kept), weight);
      total = mx::add(mx::multiply(*total, kept), values);
    } else {
      sum = weight;
      total = values;
    }
    max = next;
  }
  return mx::reshape(mx::divide(*total, *sum), queries.shape());
}

} // namespace ingle
