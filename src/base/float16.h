// The 16-bit floats of weight files.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace ingle {

inline float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even.
inline uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) { // NaN
    return 0x7fc0;
  }
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) { // infinity or NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  // The exponent's bias is 112 more in f32. Scaling by 2^112 as a float makes
  // subnormals right too.
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

// Rounds to nearest, ties to even; what is too large becomes infinity.
inline uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    return sign | 0x7e00;
  }
  if (magnitude >= 0x47800000) { // 65536 and more
    return sign | 0x7c00;
  }
  if (magnitude < 0x38800000) { // below the smallest normal, 2^-14
    // Adding 0.5 aligns the sum's last bit with the smallest subnormal, 2^-24.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t odd = magnitude >> 13 & 1;
  const uint32_t rounded = magnitude - (112u << 23) + 0xfff + odd;
  return static_cast<uint16_t>(sign | rounded >> 13);
}

// Little-endian, at any address.
inline uint16_t load_u16(const std::byte* p) {
  return static_cast<uint16_t>(
      static_cast<uint16_t>(p[0]) | static_cast<uint16_t>(p[1]) << 8);
}

inline float load_f16(const std::byte* p) {
  return f16_to_f32(load_u16(p));
}

} // namespace ingle
