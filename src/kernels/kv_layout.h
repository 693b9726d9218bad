// The bytes of the K/V rows of one layer, as attention reads them.
//
// Positions are cut into blocks of 256; a block holds, for each KV head in
// turn, as little-endian:
//
//   keys    i16 [4 tiles][padded_dim / 2][64 positions][2]
//   values  i16 [128 pairs of positions][padded_dim][2]
//   f32 [256] scales of the keys, f32 [256] scales of the values
//
// That is the order in which attention reads a head: what it waits for most is
// memory, which is quickest in long runs.
//
// A key is scale * integers with a Euclidean norm of at most 32,767 (and half
// an element's rounding), as is a query: by Cauchy and Schwarz no sum of their
// products leaves 32 bits, whatever its order. A value's largest element is
// 16,383: the weights of a block, also integers, add up to 130,000 at most,
// which leaves room for rounding in 2^31. So sums are exact, an element is held
// as well as in f16 or better, and takes as much memory.
//
// With 8 or 4 bits the elements are unsigned and of that size, in the same
// order (of 4 bits the first one in the low half of a byte), and after the
// scales follow as f16, for each group of `group_size` elements of a head:
//
//   gains, then offsets of the keys    [groups][256 positions]
//   gains, then offsets of the values  [256 positions][groups]
//
// round(gain * element + offset) is the 16-bit integer: a block is widened to
// that before its queries look at it.
//
// Attention walks over blocks and merges them in their order: a row's result
// depends neither on the rows beside it nor on who computes which block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingle {

inline constexpr int kBlockPositions = 256;
inline constexpr int kTilePositions = 64;
inline constexpr int kBlockTiles = kBlockPositions / kTilePositions;
inline constexpr float kKeyNorm = 32767; // and of a query
inline constexpr float kValueMax = 16383;
inline constexpr float kWeightMax = 32767;
inline constexpr float kWeightSum = 130000; // of a block

// Of a head whose elements have 8 or 4 bits.
inline constexpr int kMaxQuantizedDim = 512;
inline constexpr int kMaxQuantizedGroups = kMaxQuantizedDim / 32;

struct KvBlockShape {
  int head_dim = 0;
  int bits = 16; // 16, 8 or 4
  int group_size = 64; // 32, 64 or 128; of 8 or 4 bits

  bool is_quantized() const {
    return bits != 16;
  }
  int groups() const {
    return (head_dim + group_size - 1) / group_size;
  }
  KvBlockShape widened() const {
    return {head_dim};
  }

  // head_dim up to a multiple of a register's 16 lanes; the rest is zeros.
  int padded_dim() const {
    return (head_dim + 15) / 16 * 16;
  }
  // Of one half (keys or values) of one head.
  size_t half_bytes() const {
    return static_cast<size_t>(bits) * kBlockPositions *
        static_cast<size_t>(padded_dim()) / 8;
  }
  // Of the keys, or of the values, of a tile's positions.
  size_t tile_bytes() const {
    return half_bytes() / kBlockTiles;
  }
  size_t scales_offset() const {
    return 2 * half_bytes();
  }
  size_t gains_offset() const {
    return scales_offset() + 2 * sizeof(float) * kBlockPositions;
  }
  // Of the gains or the offsets of one half.
  size_t gains_bytes() const {
    return is_quantized()
        ? sizeof(uint16_t) * kBlockPositions * static_cast<size_t>(groups())
        : 0;
  }
  // Of one head.
  size_t bytes() const {
    return gains_offset() + 4 * gains_bytes();
  }
};

} // namespace ingle
