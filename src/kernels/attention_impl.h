// Positions, keys, values and attention: see kernel_set.h and kv_layout.h.
#pragma once

#include "kernels/kernel_set.h"
#include "kernels/lanes.h"

// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result): offsets
// within a panel, a tile or a block fit an int.

namespace ingle {
namespace {

template <class S>
void rotate(
    float* head,
    const float* cosines,
    const float* sines,
    int dims,
    bool traditional) {
  const int half = dims / 2;
  if (traditional) {
    for (int i = 0; i < half; ++i) {
      const float a = head[2 * i];
      const float b = head[2 * i + 1];
      head[2 * i] = a * cosines[i] - b * sines[i];
      head[2 * i + 1] = a * sines[i] + b * cosines[i];
    }
    return;
  }
  for (int i = 0; i < half; i += kLanes) {
    const int n = half - i;
    const auto a = load_some<S>(head + i, n);
    const auto b = load_some<S>(head + half + i, n);
    const auto cosine = load_some<S>(cosines + i, n);
    const auto sine = load_some<S>(sines + i, n);
    const auto first = S::sub(S::mul(a, cosine), S::mul(b, sine));
    const auto second = S::add(S::mul(a, sine), S::mul(b, cosine));
    store_some<S>(head + i, first, n);
    store_some<S>(head + half + i, second, n);
  }
}

// Up to 16 elements, the missing ones 0.
template <class S>
INGLE_INLINE void
quantize_lanes(const float* x, int n, float inverse, int16_t* out) {
  const auto v = S::mul(load_some<S>(x, n), S::set1(inverse));
  S::store_i16(out, S::round(v));
}

template <class S>
INGLE_INLINE float norm(const float* x, int n) {
  auto squares = S::set1(0);
  for (int i = 0; i < n; i += kLanes) {
    const auto v = load_some<S>(x + i, n - i);
    squares = S::fma(v, v, squares);
  }
  return __builtin_sqrtf(S::sum(squares));
}

template <class S>
INGLE_INLINE float largest(const float* x, int n) {
  auto max = S::set1(0);
  for (int i = 0; i < n; i += kLanes) {
    max = S::max(max, S::abs(load_some<S>(x + i, n - i)));
  }
  return S::max_lane(max);
}

template <class S>
float pack_query(const float* x, const KvBlockShape& shape, int32_t* pairs) {
  const float size = norm<S>(x, shape.head_dim);
  alignas(64) int16_t elements[kLanes];
  for (int i = 0; i < shape.padded_dim(); i += kLanes) {
    quantize_lanes<S>(
        x + i, shape.head_dim - i, ratio(kKeyNorm, size), elements);
    std::memcpy(pairs + i / 2, elements, sizeof elements);
  }
  return size / kKeyNorm;
}

template <class S>
void put_kv(
    const float* key,
    const float* value,
    const KvBlockShape& shape,
    int position,
    std::byte* block) {
  const float key_size = norm<S>(key, shape.head_dim);
  const float value_size = largest<S>(value, shape.head_dim);
  const int dim = shape.padded_dim();
  std::byte* key_at = block + shape.tile_bytes() * (position / kTilePositions) +
      4 * (position % kTilePositions);
  std::byte* value_at = block + shape.half_bytes() +
      static_cast<ptrdiff_t>(4) * dim * (position / 2) + 2 * (position % 2);
  alignas(64) int16_t elements[kLanes];
  for (int i = 0; i < dim; i += kLanes) {
    const int n = shape.head_dim - i;
    quantize_lanes<S>(key + i, n, ratio(kKeyNorm, key_size), elements);
    for (int j = 0; j < kLanes; j += 2, key_at += 4 * kTilePositions) {
      std::memcpy(key_at, elements + j, 4);
    }
    quantize_lanes<S>(value + i, n, ratio(kValueMax, value_size), elements);
    for (int j = 0; j < kLanes; ++j, value_at += 4) {
      std::memcpy(value_at, elements + j, 2);
    }
  }
  const auto scales = reinterpret_cast<float*>(block + shape.scales_offset());
  scales[position] = key_size / kKeyNorm;
  scales[kBlockPositions + position] = value_size / kValueMax;
}

struct BlockScratch {
  // Scores; then, in their place, weights times the values' scales.
  alignas(64) float scores[kMaxQueryRows][kBlockPositions];
  alignas(64) float largest[kMaxQueryRows][kLanes]; // of the scores, unmasked
  alignas(64) int16_t weights[kMaxQueryRows][kBlockPositions];
  float inverse[kMaxQueryRows]; // what the integer weights are times of
};

// total[row][lane] += dot(left[row], right[lane]) over `pairs` pairs. Sums of
// its own stay in registers; those of a caller that it is inlined into do not.
// `next`: what is as long as `right`, and is read after it.
template <class S, int R, int L>
__attribute__((noinline)) void multiply_pairs(
    const int32_t* const (&left)[R],
    const std::byte* right,
    size_t right_stride,
    int pairs,
    const std::byte* next,
    typename S::I (&total)[R][L]) {
  typename S::I sums[R][L];
  unroll<R * L>([&](auto i) __attribute__((always_inline)) {
    sums[i / L][i % L] = total[i / L][i % L];
  });
  for (int i = 0; i < pairs; ++i, right += right_stride, next += right_stride) {
    typename S::I lanes[L];
    unroll<L>([&](auto l) __attribute__((always_inline)) {
      lanes[l] = S::load_ints(right + 64 * l);
      __builtin_prefetch(next + 64 * l);
    });
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      const auto x = S::set1_int(left[r][i]);
      unroll<L>([&](auto l) __attribute__((always_inline)) {
        sums[r][l] = S::dot_pairs(sums[r][l], lanes[l], x);
      });
    });
  }
  unroll<R * L>([&](auto i) __attribute__((always_inline)) {
    total[i / L][i % L] = sums[i / L][i % L];
  });
}

// The tiles of a block that some row sees.
struct TileRange {
  int begin = kBlockTiles;
  int end = 0;
};

inline TileRange tiles_seen(const BlockQuery& q) {
  TileRange range;
  for (int r = 0; r < q.rows; ++r) {
    if (q.begins[r] >= q.ends[r]) {
      continue;
    }
    const int begin = q.begins[r] / kTilePositions;
    const int end = (q.ends[r] + kTilePositions - 1) / kTilePositions;
    range.begin = begin < range.begin ? begin : range.begin;
    range.end = end > range.end ? end : range.end;
  }
  return range;
}

INGLE_INLINE const std::byte* keys_of(const BlockQuery& q, int tile) {
  return q.block + q.shape.tile_bytes() * tile;
}
INGLE_INLINE const std::byte* values_of(const BlockQuery& q, int tile) {
  return keys_of(q, tile) + q.shape.half_bytes();
}
// Of the keys; those of the values stand behind them.
INGLE_INLINE const float* scales_of(const BlockQuery& q) {
  return reinterpret_cast<const float*>(q.block + q.shape.scales_offset());
}

// The scales of the next block lie behind all that is read before them, and a
// wait for them stops everything. (Of no use where the next block is this one.)
INGLE_INLINE void fetch_next_scales(const BlockQuery& q) {
  const std::byte* scales = q.next + q.shape.scales_offset();
  for (int i = 0; i < 2 * kBlockPositions; i += kLanes) {
    __builtin_prefetch(scales + sizeof(float) * i);
  }
}

// `next`: the keys or values that are read after the tile's keys.
template <class S, int R>
void score_tile(
    const BlockQuery& q,
    int tile,
    const std::byte* next,
    BlockScratch& scratch) {
  constexpr int kWidth = S::kAttentionLanes;
  const std::byte* keys = keys_of(q, tile);
  const float* key_scales = scales_of(q) + tile * kTilePositions;
  const int32_t* queries[R];
  for (int r = 0; r < R; ++r) {
    queries[r] = q.queries[r];
  }
  for (int p = 0; p < kTilePositions; p += kWidth * kLanes) {
    typename S::I sums[R][kWidth];
    clear<S, R, kWidth>(sums);
    multiply_pairs<S, R, kWidth>(
        queries,
        keys + 4 * p,
        4 * kTilePositions,
        q.shape.padded_dim() / 2,
        next + 4 * p,
        sums);
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      float* scores = scratch.scores[r] + tile * kTilePositions + p;
      auto largest = S::load(scratch.largest[r]);
      unroll<kWidth>([&](auto l) __attribute__((always_inline)) {
        const auto scale =
            S::mul(S::set1(q.scales[r]), S::load(key_scales + p + kLanes * l));
        const auto score = S::mul(S::to_float(sums[r][l]), scale);
        S::store(scores + kLanes * l, score);
        largest = S::max(largest, score);
      });
      S::store(scratch.largest[r], largest);
    });
  }
}

// cap * tanh(score / cap).
template <class S>
INGLE_INLINE typename S::F soften(typename S::F score, float cap) {
  const auto magnitude = S::mul(S::abs(score), S::set1(-2 * kLog2E / cap));
  const auto t = exp2<S>(magnitude);
  const auto one = S::set1(1);
  const auto tanh = S::div(S::sub(one, t), S::add(one, t));
  return S::copy_sign(S::mul(tanh, S::set1(cap)), score);
}

template <class S>
void soften_all(float* x, int64_t n, float cap) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int count = n - i < kLanes ? static_cast<int>(n - i) : kLanes;
    store_some<S>(x + i, soften<S>(load_some<S>(x + i, count), cap), count);
  }
}

// Masks a row's scores and gives their largest.
template <class S>
INGLE_INLINE float
mask_scores(const BlockQuery& q, int row, TileRange range, float* scores) {
  auto max = S::set1(kUnseen);
  for (int i = range.begin * kTilePositions; i < range.end * kTilePositions;
       i += kLanes) {
    auto s = S::load(scores + i);
    if (q.soft_cap > 0) {
      s = soften<S>(s, q.soft_cap);
    }
    if (i < q.begins[row] || i + kLanes > q.ends[row]) {
      s = S::keep_lanes(s, q.begins[row] - i, q.ends[row] - i, kUnseen);
    }
    S::store(scores + i, s);
    max = S::max(max, s);
  }
  return S::max_lane(max);
}

INGLE_INLINE bool sees_some(const BlockQuery& q, int row) {
  return q.begins[row] < q.ends[row];
}

// The row's largest score.
template <class S>
INGLE_INLINE float largest_score(
    const BlockQuery& q,
    int row,
    TileRange range,
    BlockScratch& scratch) {
  const bool sees_all = q.begins[row] <= range.begin * kTilePositions &&
      q.ends[row] >= range.end * kTilePositions;
  return sees_all && q.soft_cap == 0
      ? S::max_lane(S::load(scratch.largest[row]))
      : mask_scores<S>(q, row, range, scratch.scores[row]);
}

// Sums over a row's positions, and a maximum.
template <class S>
struct RowSums {
  typename S::F weight;
  typename S::F scaled; // of weights times the values' scales
  typename S::F scaled_max;
};

// Scores -> their weights times the values' scales.
template <class S>
INGLE_INLINE RowSums<S> weigh_row(
    const BlockQuery& q,
    int row,
    TileRange range,
    float max,
    BlockScratch& scratch) {
  float* scores = scratch.scores[row];
  const float* value_scales = scales_of(q) + kBlockPositions;
  RowSums<S> sums{S::set1(0), S::set1(0), S::set1(0)};
  for (int i = range.begin * kTilePositions; i < range.end * kTilePositions;
       i += kLanes) {
    const auto p = short_exp2<S>(S::sub(S::load(scores + i), S::set1(max)));
    sums.weight = S::add(sums.weight, p);
    // A lane that is not seen has a weight of 0, and may have any finite scale.
    const auto scaled = S::mul(p, S::load(value_scales + i));
    sums.scaled = S::add(sums.scaled, scaled);
    sums.scaled_max = S::max(sums.scaled_max, scaled);
    S::store(scores + i, scaled);
  }
  return sums;
}

// What a row's weights, times the values' scales, are to be multiplied by.
template <class S>
INGLE_INLINE float integer_factor(const RowSums<S>& sums) {
  const float largest = S::max_lane(sums.scaled_max);
  const float by_largest = kWeightMax / largest;
  const float by_sum = kWeightSum / S::sum(sums.scaled);
  return largest > 1e-30f ? (by_largest < by_sum ? by_largest : by_sum) : 0;
}

// Scores -> their weights times the values' scales, as integers. Each step is
// done for all rows before the next one: what is reduced over a row is long in
// coming, and the rows don't wait for one another.
template <class S, int R>
INGLE_INLINE void weigh_rows(
    const BlockQuery& q,
    TileRange range,
    BlockScratch& scratch,
    PartialAttention* results) {
  RowSums<S> sums[R];
  float factors[R];
  for (int r = 0; r < R; ++r) {
    results[r].max =
        sees_some(q, r) ? largest_score<S>(q, r, range, scratch) : kUnseen;
  }
  for (int r = 0; r < R; ++r) {
    if (sees_some(q, r)) {
      sums[r] = weigh_row<S>(q, r, range, results[r].max, scratch);
    } else {
      sums[r] = {S::set1(0), S::set1(0), S::set1(0)};
      std::memset(scratch.scores[r], 0, sizeof scratch.scores[r]);
    }
  }
  for (int r = 0; r < R; ++r) {
    results[r].weight = S::sum(sums[r].weight);
    factors[r] = integer_factor<S>(sums[r]);
    scratch.inverse[r] = ratio(1, factors[r]);
  }
  for (int i = range.begin * kTilePositions; i < range.end * kTilePositions;
       i += kLanes) {
    for (int r = 0; r < R; ++r) {
      const auto scaled = S::load(scratch.scores[r] + i);
      S::store_i16(
          scratch.weights[r] + i,
          S::round(S::mul(scaled, S::set1(factors[r]))));
    }
  }
}

template <class S, int R, int L>
INGLE_INLINE void sum_values(
    const BlockQuery& q,
    TileRange range,
    int dim,
    BlockScratch& scratch,
    PartialAttention* results) {
  typename S::I sums[R][L];
  clear<S, R, L>(sums);
  for (int b = range.begin; b < range.end; ++b) {
    const int32_t* weights[R];
    for (int r = 0; r < R; ++r) {
      weights[r] = reinterpret_cast<const int32_t*>(
          scratch.weights[r] + b * kTilePositions);
    }
    const std::byte* next = b + 1 < range.end ? values_of(q, b + 1) : q.next;
    multiply_pairs<S, R, L>(
        weights,
        values_of(q, b) + 4 * dim,
        4 * static_cast<size_t>(q.shape.padded_dim()),
        kTilePositions / 2,
        next + 4 * dim,
        sums);
  }
  unroll<R>([&](auto r) __attribute__((always_inline)) {
    const auto inverse = S::set1(scratch.inverse[r]);
    unroll<L>([&](auto l) __attribute__((always_inline)) {
      S::store(
          results[r].values + dim + kLanes * l,
          S::mul(S::to_float(sums[r][l]), inverse));
    });
  });
}

template <class S, int R>
void attend_rows(const BlockQuery& q, PartialAttention* results) {
  constexpr int kWidth = S::kAttentionLanes;
  const TileRange range = tiles_seen(q);
  BlockScratch scratch;
  for (int r = 0; r < R; ++r) {
    S::store(scratch.largest[r], S::set1(kUnseen));
  }
  for (int b = range.begin; b < range.end; ++b) {
    score_tile<S, R>(
        q,
        b,
        b + 1 < range.end ? keys_of(q, b + 1) : values_of(q, range.begin),
        scratch);
  }
  weigh_rows<S, R>(q, range, scratch, results);
  fetch_next_scales(q);
  const int dims = q.shape.padded_dim();
  int dim = 0;
  for (; dim + kWidth * kLanes <= dims; dim += kWidth * kLanes) {
    sum_values<S, R, kWidth>(q, range, dim, scratch, results);
  }
  for (; dim < dims; dim += kLanes) {
    sum_values<S, R, 1>(q, range, dim, scratch, results);
  }
}

template <class S, int R>
void attend_up_to(const BlockQuery& q, PartialAttention* results) {
  if (q.rows == R) {
    attend_rows<S, R>(q, results);
  } else if constexpr (R > 1) {
    attend_up_to<S, R - 1>(q, results);
  }
}

template <class S>
void attend_block(const BlockQuery& q, PartialAttention* results) {
  attend_up_to<S, S::kQueryRows>(q, results);
}

template <class S>
void merge(PartialAttention& total, const PartialAttention& part, int n) {
  const float max = total.max > part.max ? total.max : part.max;
  const auto keep = exp2<S>(S::set1(total.max - max));
  const auto take = exp2<S>(S::set1(part.max - max));
  alignas(64) float factors[2][kLanes];
  S::store(factors[0], keep);
  S::store(factors[1], take);
  total.max = max;
  total.weight = total.weight * factors[0][0] + part.weight * factors[1][0];
  for (int i = 0; i < n; i += kLanes) {
    const auto kept = S::mul(S::load(total.values + i), keep);
    S::store(total.values + i, S::fma(S::load(part.values + i), take, kept));
  }
}

template <class S>
void finish(const PartialAttention& total, int n, float* out) {
  const auto inverse = S::set1(1 / total.weight);
  for (int i = 0; i < n; i += kLanes) {
    store_some<S>(out + i, S::mul(S::load(total.values + i), inverse), n - i);
  }
}

} // namespace
} // namespace ingle

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
