// Keys and values of 8 and 4 bits: see kernel_set.h and kv_layout.h.
#pragma once

#include "kernels/attention_impl.h"
#include "kernels/kernel_set.h"
#include "kernels/lanes.h"

// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result): offsets
// within a block fit an int.

namespace ingle {
namespace {

// Gains and offsets are rounded to f16 after the integers' bound is set.
constexpr float kRoundingMargin = 1 + 1.0f / 512;

// One key or value: its elements, and per group what brings them back.
struct QuantizedHead {
  alignas(64) int16_t elements[kMaxQuantizedDim];
  uint16_t gains[kMaxQuantizedGroups];
  uint16_t offsets[kMaxQuantizedGroups];
  float scale = 0; // of the 16-bit integers
};

struct Bounds {
  float low = 0;
  float high = 0;
};

// Of [begin, end), with the zeros that a head is filled up with.
template <class S>
INGLE_INLINE Bounds bounds_of(const float* x, int begin, int end) {
  auto low = S::set1(0);
  auto high = S::set1(0);
  for (int i = begin; i < end; i += kLanes) {
    const auto v = load_some<S>(x + i, end - i);
    low = i == begin ? v : S::min(low, v);
    high = i == begin ? v : S::max(high, v);
  }
  return {-S::max_lane(S::sub(S::set1(0), low)), S::max_lane(high)};
}

// Gives x as f16 holds it.
template <class S>
INGLE_INLINE float round_to_f16(float x, uint16_t& bits) {
  alignas(64) std::byte halves[2 * kLanes];
  alignas(64) float lanes[kLanes];
  S::store_f16(halves, S::set1(x));
  S::store(lanes, S::load_f16(halves));
  std::memcpy(&bits, halves, sizeof bits);
  return lanes[0];
}

// `size`: the norm or the largest element of x, which is to be `limit` at most
// in integers; `error`: what size may grow by when every element is one off.
template <class S>
void quantize_head(
    const float* x,
    const KvBlockShape& shape,
    float size,
    float limit,
    float error,
    QuantizedHead& out) {
  const auto levels = static_cast<float>((1 << shape.bits) - 1);
  Bounds bounds[kMaxQuantizedGroups];
  float largest_step = 0;
  for (int g = 0; g < shape.groups(); ++g) {
    const int begin = g * shape.group_size;
    const int end = begin + shape.group_size;
    bounds[g] =
        bounds_of<S>(x, begin, end < shape.head_dim ? end : shape.head_dim);
    const float step = (bounds[g].high - bounds[g].low) / levels;
    largest_step = step > largest_step ? step : largest_step;
  }
  const float bound = (size + 0.5f * largest_step * error) * kRoundingMargin;
  const float inverse = ratio(limit, bound);
  out.scale = bound / limit;
  for (int g = 0; g < shape.groups(); ++g) {
    const float offset =
        round_to_f16<S>(bounds[g].low * inverse, out.offsets[g]);
    const float gain = round_to_f16<S>(
        (bounds[g].high - bounds[g].low) / levels * inverse, out.gains[g]);
    const int begin = g * shape.group_size;
    const int end = begin + shape.group_size;
    for (int i = begin; i < end && i < shape.padded_dim(); i += kLanes) {
      const auto integers =
          S::mul(load_some<S>(x + i, shape.head_dim - i), S::set1(inverse));
      const auto element =
          S::mul(S::sub(integers, S::set1(offset)), S::set1(ratio(1, gain)));
      S::store_i16(
          out.elements + i,
          S::round(S::min(S::max(element, S::set1(0)), S::set1(levels))));
    }
  }
}

INGLE_INLINE void put_element(
    std::byte* half,
    int bits,
    ptrdiff_t pair,
    int which, // of the pair
    int16_t element) {
  const auto byte = static_cast<std::byte>(element);
  if (bits == 8) {
    half[2 * pair + which] = byte;
  } else {
    const auto kept = half[pair] & std::byte(which == 0 ? 0xf0 : 0x0f);
    half[pair] = kept | byte << (4 * which);
  }
}

template <class S>
void put_quantized_kv(
    const float* key,
    const float* value,
    const KvBlockShape& shape,
    int position,
    std::byte* block) {
  QuantizedHead k;
  QuantizedHead v;
  const int dim = shape.padded_dim();
  const float root = __builtin_sqrtf(static_cast<float>(dim));
  quantize_head<S>(key, shape, norm<S>(key, shape.head_dim), kKeyNorm, root, k);
  quantize_head<S>(
      value, shape, largest<S>(value, shape.head_dim), kValueMax, 1, v);
  std::byte* values = block + shape.half_bytes();
  for (int i = 0; i < dim; ++i) {
    put_element(
        block,
        shape.bits,
        (position / kTilePositions * dim + i) / 2 * kTilePositions +
            position % kTilePositions,
        i % 2,
        k.elements[i]);
    put_element(
        values,
        shape.bits,
        position / 2 * dim + i,
        position % 2,
        v.elements[i]);
  }
  const auto scales = reinterpret_cast<float*>(block + shape.scales_offset());
  scales[position] = k.scale;
  scales[kBlockPositions + position] = v.scale;
  const auto gains = reinterpret_cast<uint16_t*>(block + shape.gains_offset());
  const int groups = shape.groups();
  const int each = groups * kBlockPositions;
  for (int g = 0; g < groups; ++g) {
    gains[g * kBlockPositions + position] = k.gains[g];
    gains[each + g * kBlockPositions + position] = k.offsets[g];
    gains[2 * each + position * groups + g] = v.gains[g];
    gains[3 * each + position * groups + g] = v.offsets[g];
  }
}

// 16 pairs of elements, to integers and side by side.
template <class S, int kBits>
INGLE_INLINE void widen_pairs(
    const std::byte* from,
    typename S::F first_gain,
    typename S::F first_offset,
    typename S::F second_gain,
    typename S::F second_offset,
    std::byte* to) {
  const auto pairs =
      kBits == 8 ? S::load_u16_ints(from) : S::load_u8_ints(from);
  const auto first = S::to_float(S::template low_bits<kBits>(pairs));
  const auto second = S::to_float(S::template shift_right<kBits>(pairs));
  S::store_ints(
      to,
      S::pair(
          S::round(S::fma(first, first_gain, first_offset)),
          S::round(S::fma(second, second_gain, second_offset))));
}

template <class S, int kBits>
void widen_keys(
    const std::byte* keys,
    const std::byte* gains,
    const KvBlockShape& shape,
    int tile,
    std::byte* out) {
  constexpr int kPairBytes = kBits / 4;
  const int dims = shape.padded_dim() / 2;
  for (int g = 0; g < shape.groups(); ++g) {
    const int begin = g * shape.group_size / 2;
    const int last = begin + shape.group_size / 2;
    const int end = last < dims ? last : dims;
    for (int p = 0; p < kTilePositions; p += kLanes) {
      const std::byte* at =
          gains + 2 * (g * kBlockPositions + tile * kTilePositions + p);
      const auto gain = S::load_f16(at);
      const auto offset = S::load_f16(at + shape.gains_bytes());
      for (int d = begin; d < end; ++d) {
        const int pair = (tile * dims + d) * kTilePositions + p;
        widen_pairs<S, kBits>(
            keys + kPairBytes * pair,
            gain,
            offset,
            gain,
            offset,
            out + 4 * pair);
      }
    }
  }
}

template <class S, int kBits>
void widen_values(
    const std::byte* values,
    const std::byte* gains,
    const KvBlockShape& shape,
    int tile,
    std::byte* out) {
  constexpr int kPairBytes = kBits / 4;
  const int dim = shape.padded_dim();
  const int groups = shape.groups();
  const std::byte* tile_gains = gains + 2 * tile * kTilePositions * groups;
  alignas(64) float factors[2][kMaxQuantizedGroups * kTilePositions];
  for (int i = 0; i < groups * kTilePositions; i += kLanes) {
    S::store(factors[0] + i, S::load_f16(tile_gains + 2 * i));
    S::store(
        factors[1] + i, S::load_f16(tile_gains + shape.gains_bytes() + 2 * i));
  }
  for (int p = 0; p < kTilePositions / 2; ++p) {
    const int pair = tile * kTilePositions / 2 + p;
    for (int i = 0; i < dim; i += kLanes) {
      const int first = 2 * p * groups + i / shape.group_size;
      const int second = first + groups;
      const int at = pair * dim + i;
      widen_pairs<S, kBits>(
          values + kPairBytes * at,
          S::set1(factors[0][first]),
          S::set1(factors[1][first]),
          S::set1(factors[0][second]),
          S::set1(factors[1][second]),
          out + 4 * at);
    }
  }
}

template <class S, int kBits>
void widen_tiles(
    const std::byte* block,
    const KvBlockShape& shape,
    int begin,
    int end,
    std::byte* out) {
  const KvBlockShape wide = shape.widened();
  const std::byte* gains = block + shape.gains_offset();
  for (int tile = begin; tile < end; ++tile) {
    widen_keys<S, kBits>(block, gains, shape, tile, out);
    widen_values<S, kBits>(
        block + shape.half_bytes(),
        gains + 2 * shape.gains_bytes(),
        shape,
        tile,
        out + wide.half_bytes());
  }
  std::memcpy(
      out + wide.scales_offset(),
      block + shape.scales_offset(),
      2 * sizeof(float) * kBlockPositions);
}

template <class S>
void widen(
    const std::byte* block,
    const KvBlockShape& shape,
    int begin,
    int end,
    std::byte* out) {
  if (shape.bits == 8) {
    widen_tiles<S, 8>(block, shape, begin, end, out);
  } else {
    widen_tiles<S, 4>(block, shape, begin, end, out);
  }
}

template <class S>
void put(
    const float* key,
    const float* value,
    const KvBlockShape& shape,
    int position,
    std::byte* block) {
  if (shape.is_quantized()) {
    put_quantized_kv<S>(key, value, shape, position, block);
  } else {
    put_kv<S>(key, value, shape, position, block);
  }
}

} // namespace
} // namespace ingle

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
