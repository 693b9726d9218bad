#include "import/dequantize.h"

#include <cstring>

#include "base/float16.h"

namespace ingle {
namespace {

int low_nibble(std::byte b) {
  return static_cast<int>(b) & 15;
}

int high_nibble(std::byte b) {
  return static_cast<int>(b) >> 4;
}

int bits_at(std::byte b, size_t shift, int mask) {
  return static_cast<int>(b) >> shift & mask;
}

void plain_f32(const std::byte* block, float* out) {
  std::memcpy(out, block, sizeof(float)); // both little-endian
}

void plain_f16(const std::byte* block, float* out) {
  *out = load_f16(block);
}

void plain_bf16(const std::byte* block, float* out) {
  *out = bf16_to_f32(load_u16(block));
}

// d, 16 bytes of nibbles: low ones are elements 0 to 15, high ones 16 to 31.
void q4_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const std::byte* q = block + 2;
  for (size_t i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(low_nibble(q[i]) - 8) * d;
    out[i + 16] = static_cast<float>(high_nibble(q[i]) - 8) * d;
  }
}

void q4_1(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const float m = load_f16(block + 2);
  const std::byte* q = block + 4;
  for (size_t i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(low_nibble(q[i])) * d + m;
    out[i + 16] = static_cast<float>(high_nibble(q[i])) * d + m;
  }
}

// `high` holds the fifth bits of all 32 elements, element 0 in the lowest.
int fifth_bit(const std::byte* high, size_t element) {
  return bits_at(high[element / 8], element % 8, 1) << 4;
}

void q5_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const std::byte* high = block + 2;
  const std::byte* q = block + 6;
  for (size_t i = 0; i < 16; ++i) {
    const int first = low_nibble(q[i]) | fifth_bit(high, i);
    const int second = high_nibble(q[i]) | fifth_bit(high, i + 16);
    out[i] = static_cast<float>(first - 16) * d;
    out[i + 16] = static_cast<float>(second - 16) * d;
  }
}

void q5_1(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const float m = load_f16(block + 2);
  const std::byte* high = block + 4;
  const std::byte* q = block + 8;
  for (size_t i = 0; i < 16; ++i) {
    const int first = low_nibble(q[i]) | fifth_bit(high, i);
    const int second = high_nibble(q[i]) | fifth_bit(high, i + 16);
    out[i] = static_cast<float>(first) * d + m;
    out[i + 16] = static_cast<float>(second) * d + m;
  }
}

void q8_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  for (size_t i = 0; i < 32; ++i) {
    out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
  }
}

// 16 sub-blocks of 16; 16 bytes of scale (low) and minimum (high nibble), 64
// bytes of quants, d, dmin. Byte i of a half holds elements i, i + 32, i + 64
// and i + 96 of it, two bits each.
void q2_k(const std::byte* block, float* out) {
  const std::byte* scales = block;
  const std::byte* q = block + 16;
  const float d = load_f16(block + 80);
  const float dmin = load_f16(block + 82);
  for (size_t i = 0; i < 256; ++i) {
    const std::byte packed = q[i / 128 * 32 + i % 32];
    const int code = bits_at(packed, i % 128 / 32 * 2, 3);
    const std::byte scale = scales[i / 16];
    out[i] =
        d * static_cast<float>(low_nibble(scale)) * static_cast<float>(code) -
        dmin * static_cast<float>(high_nibble(scale));
  }
}

// 32 bytes of third bits, 64 of quants laid out as in Q2_K, 12 bytes of 6-bit
// scales, d. Third bits: byte i % 32, bit i / 32.
void q3_k(const std::byte* block, float* out) {
  const std::byte* high = block;
  const std::byte* q = block + 32;
  const std::byte* scales = block + 96;
  const float d = load_f16(block + 108);
  for (size_t i = 0; i < 256; ++i) {
    const size_t s = i / 16;
    const int low = s < 8 ? low_nibble(scales[s]) : high_nibble(scales[s - 8]);
    const int scale = low | bits_at(scales[8 + s % 4], s / 4 * 2, 3) << 4;
    const std::byte packed = q[i / 128 * 32 + i % 32];
    const int code = bits_at(packed, i % 128 / 32 * 2, 3) |
        bits_at(high[i % 32], i / 32, 1) << 2;
    out[i] = d * static_cast<float>(scale - 32) * static_cast<float>(code - 4);
  }
}

// d, dmin, 12 bytes of scales and minimums, 128 of nibbles: 32 bytes hold 64
// elements, the low nibbles first.
void q4_k(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const float dmin = load_f16(block + 2);
  for (size_t j = 0; j < 8; ++j) {
    const auto [scale, min] = unpack_scale_and_min(block + 4, j);
    const float step = d * static_cast<float>(scale);
    const float offset = dmin * static_cast<float>(min);
    for (size_t i = 0; i < 32; ++i) {
      const int code = bits_at(block[16 + j / 2 * 32 + i], j % 2 * 4, 15);
      out[j * 32 + i] = step * static_cast<float>(code) - offset;
    }
  }
}

// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte i
// belongs to element i of sub-block j.
void q5_k(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const float dmin = load_f16(block + 2);
  for (size_t j = 0; j < 8; ++j) {
    const auto [scale, min] = unpack_scale_and_min(block + 4, j);
    const float step = d * static_cast<float>(scale);
    const float offset = dmin * static_cast<float>(min);
    for (size_t i = 0; i < 32; ++i) {
      const int code = bits_at(block[48 + j / 2 * 32 + i], j % 2 * 4, 15) |
          bits_at(block[16 + i], j, 1) << 4;
      out[j * 32 + i] = step * static_cast<float>(code) - offset;
    }
  }
}

// 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d. Per
// half: nibble byte i holds elements i and i + 64, high byte i the pairs of
// i, i + 32, i + 64 and i + 96.
void q6_k(const std::byte* block, float* out) {
  const float d = load_f16(block + 208);
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128;
    const std::byte low = block[half * 64 + i % 64];
    const std::byte high = block[128 + half * 32 + i % 32];
    const int code = bits_at(low, i % 128 / 64 * 4, 15) |
        bits_at(high, i % 128 / 32 * 2, 3) << 4;
    const auto scale = static_cast<int8_t>(block[192 + i / 16]);
    out[i] = d * static_cast<float>(scale) * static_cast<float>(code - 32);
  }
}

using BlockFunction = void (*)(const std::byte*, float*);

BlockFunction block_function(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
      return plain_f32;
    case GgmlType::kF16:
      return plain_f16;
    case GgmlType::kBF16:
      return plain_bf16;
    case GgmlType::kQ4_0:
      return q4_0;
    case GgmlType::kQ4_1:
      return q4_1;
    case GgmlType::kQ5_0:
      return q5_0;
    case GgmlType::kQ5_1:
      return q5_1;
    case GgmlType::kQ8_0:
      return q8_0;
    case GgmlType::kQ2_K:
      return q2_k;
    case GgmlType::kQ3_K:
      return q3_k;
    case GgmlType::kQ4_K:
      return q4_k;
    case GgmlType::kQ5_K:
      return q5_k;
    case GgmlType::kQ6_K:
      return q6_k;
  }
  return nullptr;
}

} // namespace

ScaleAndMin unpack_scale_and_min(const std::byte* packed, size_t j) {
  if (j < 4) {
    return {bits_at(packed[j], 0, 63), bits_at(packed[j + 4], 0, 63)};
  }
  return {
      low_nibble(packed[j + 4]) | bits_at(packed[j - 4], 6, 3) << 4,
      high_nibble(packed[j + 4]) | bits_at(packed[j], 6, 3) << 4};
}

void dequantize(GgmlType type, ByteView blocks, std::span<float> out) {
  const GgmlTypeInfo& info = ggml_type_info(type);
  const BlockFunction function = block_function(type);
  const std::byte* block = blocks.data();
  for (size_t i = 0; i < out.size(); i += info.block_elements) {
    function(block, out.data() + i);
    block += info.block_bytes;
  }
}

} // namespace ingle
