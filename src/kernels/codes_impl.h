// Codes of quantised matrices as the bytes that are multiplied: see matrix.h
// for the layout.
#pragma once

#include "kernels/lanes.h"

// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result): offsets
// within a chunk fit an int.

namespace ingle {
namespace {

// Quad q of the 16 rows, as bytes: see matrix.h.
template <class S, int kBits, int q>
INGLE_INLINE typename S::B plane(const std::byte* chunk) {
  const auto bytes = S::load_bytes(chunk + 64 * (q % kBits));
  if constexpr (kBits == 8) {
    return bytes;
  } else {
    return S::template bits<kBits*(q / kBits), (1 << kBits) - 1>(bytes);
  }
}

// In place of a number of bits: 4 of them, which are looked up.
constexpr int kMxfp4 = -4;
// Twice kMxfp4Values, and 12: what is multiplied are unsigned bytes.
constexpr int kMxfp4Offset = 12;
alignas(16) constexpr uint8_t kMxfp4Bytes[16] =
    {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
constexpr int stored_bits(int bits) {
  return bits == kMxfp4 ? 4 : bits;
}
// Of the bytes that are multiplied.
constexpr int byte_bits(int bits) {
  return bits == kMxfp4 ? 5 : bits;
}

template <class S, int kBits, int q>
INGLE_INLINE typename S::B weights(const std::byte* chunk) {
  if constexpr (kBits == kMxfp4) {
    return S::look_up(plane<S, 4, q>(chunk), kMxfp4Bytes);
  } else if constexpr (kBits == 3) {
    return S::template join<2>(
        plane<S, 2, q>(chunk), plane<S, 1, q>(chunk + 64 * 2));
  } else if constexpr (kBits == 5) {
    return S::template join<4>(
        plane<S, 4, q>(chunk), plane<S, 1, q>(chunk + 64 * 4));
  } else if constexpr (kBits == 6) {
    return S::template join<4>(
        plane<S, 4, q>(chunk), plane<S, 2, q>(chunk + 64 * 4));
  } else {
    return plane<S, kBits, q>(chunk);
  }
}

} // namespace
} // namespace ingle

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
