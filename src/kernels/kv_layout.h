// The bytes of the K/V rows of one layer, as attention reads them.
//
// Positions are cut into blocks of 64; a block holds, for each KV head in
// turn, as little-endian:
//
//   keys    i16 [padded_dim / 2][64 positions][2]
//   values  i16 [32 pairs of positions][padded_dim][2]
//   f32 [64] scales of the keys, f32 [64] scales of the values
//
// A key is scale * integers with a Euclidean norm of at most 32,767 (and half
// an element's rounding), as is a query: by Cauchy and Schwarz no sum of their
// products leaves 32 bits, whatever its order. A value's largest element is
// 16,383: the weights of a span, also integers, add up to 130,000 at most,
// which leaves room for rounding in 2^31. So sums are exact, an element is held
// as well as in f16 or better, and takes as much memory.
//
// Attention walks over spans of 256 positions that start at multiples of 256,
// and merges them in that order: a row's result depends neither on the rows
// beside it nor on who computes which span.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingle {

inline constexpr int kBlockPositions = 64;
inline constexpr int kSpanPositions = 256;
inline constexpr int kSpanBlocks = kSpanPositions / kBlockPositions;
inline constexpr float kKeyNorm = 32767; // and of a query
inline constexpr float kValueMax = 16383;
inline constexpr float kWeightMax = 32767;
inline constexpr float kWeightSum = 130000; // of a span

struct KvBlockShape {
  int head_dim = 0;

  // head_dim up to a multiple of a register's 16 lanes; the rest is zeros.
  int padded_dim() const {
    return (head_dim + 15) / 16 * 16;
  }
  // Of one half (keys or values) of one head.
  size_t half_bytes() const {
    return sizeof(int16_t) * kBlockPositions *
        static_cast<size_t>(padded_dim());
  }
  size_t scales_offset() const {
    return 2 * half_bytes();
  }
  // Of one head.
  size_t bytes() const {
    return scales_offset() + 2 * sizeof(float) * kBlockPositions;
  }
};

} // namespace ingle
