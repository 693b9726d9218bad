#include "import/affine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/float16.h"
#include "import/dequantize.h"

namespace ingle {
namespace {

constexpr size_t kGroup = kAffineGroup;

struct Group {
  std::array<uint8_t, kGroup> codes;
  float scale;
  float bias;
};

uint8_t as_u8(std::byte b) {
  return static_cast<uint8_t>(b);
}

// 16 bytes of nibbles: low ones are codes 0 to 15, high ones 16 to 31.
void split_nibbles(const std::byte* q, Group& group) {
  for (size_t i = 0; i < kGroup / 2; ++i) {
    group.codes[i] = as_u8(q[i]) & 15;
    group.codes[i + kGroup / 2] = as_u8(q[i]) >> 4;
  }
}

void add_fifth_bits(const std::byte* high, Group& group) {
  for (size_t i = 0; i < kGroup; ++i) {
    group.codes[i] |= (as_u8(high[i / 8]) >> (i % 8) & 1) << 4;
  }
}

void legacy_group(GgmlType type, const std::byte* block, Group& group) {
  group.scale = load_f16(block);
  switch (type) {
    case GgmlType::kQ4_0:
      group.bias = -8 * group.scale;
      split_nibbles(block + 2, group);
      break;
    case GgmlType::kQ4_1:
      group.bias = load_f16(block + 2);
      split_nibbles(block + 4, group);
      break;
    case GgmlType::kQ5_0:
      group.bias = -16 * group.scale;
      split_nibbles(block + 6, group);
      add_fifth_bits(block + 2, group);
      break;
    case GgmlType::kQ5_1:
      group.bias = load_f16(block + 2);
      split_nibbles(block + 8, group);
      add_fifth_bits(block + 4, group);
      break;
    default: // Q8_0
      group.bias = -128 * group.scale;
      for (size_t i = 0; i < kGroup; ++i) {
        group.codes[i] = as_u8(block[2 + i]) ^ 0x80; // -128 .. 127 -> 0 .. 255
      }
  }
}

// Sub-block `j` of a Q4_K or Q5_K block.
void k_group(GgmlType type, const std::byte* block, size_t j, Group& group) {
  const auto [scale, min] = unpack_scale_and_min(block + 4, j);
  group.scale = load_f16(block) * static_cast<float>(scale);
  group.bias = -(load_f16(block + 2) * static_cast<float>(min));
  const bool has_fifth = type == GgmlType::kQ5_K;
  const std::byte* q = block + (has_fifth ? 48 : 16) + j / 2 * kGroup;
  for (size_t i = 0; i < kGroup; ++i) {
    group.codes[i] = as_u8(q[i]) >> (j % 2 * 4) & 15;
    if (has_fifth) {
      group.codes[i] |= (as_u8(block[16 + i]) >> j & 1) << 4;
    }
  }
}

void requantized_group(const float* values, Group& group) {
  const auto [low, high] = std::minmax_element(values, values + kGroup);
  group.bias = *low;
  group.scale = (*high - *low) / 255;
  for (size_t i = 0; i < kGroup; ++i) {
    const float steps =
        group.scale > 0 ? (values[i] - *low) / group.scale : 0.0f;
    // A NaN becomes 0 here; the caller looks at scale and bias.
    group.codes[i] = static_cast<uint8_t>(
        std::min(std::max(0.0f, std::round(steps)), 255.0f));
  }
}

// Appends what to_affine() returns, group by group.
class AffineWriter {
 public:
  AffineWriter(const AffineForm& form, AffineBytes& out)
      : form_(form), out_(out) {
    out.codes.clear();
    out.scales.clear();
    out.biases.clear();
  }

  void add(const Group& group) {
    pack(group.codes);
    store(group.scale, out_.scales);
    store(group.bias, out_.biases);
  }
  bool all_finite() const {
    return all_finite_;
  }

 private:
  void pack(const std::array<uint8_t, kGroup>& codes) {
    uint32_t pending = 0;
    int count = 0; // bits in `pending`
    for (const uint8_t code : codes) {
      pending |= static_cast<uint32_t>(code) << count;
      for (count += form_.bits; count >= 8; count -= 8) {
        out_.codes.push_back(static_cast<std::byte>(pending));
        pending >>= 8;
      }
    }
  }

  void store(float value, std::vector<std::byte>& to) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    if (form_.scale_type == TensorType::kF16) {
      bits = f32_to_f16(value);
      value = f16_to_f32(static_cast<uint16_t>(bits));
    }
    all_finite_ = all_finite_ && std::isfinite(value);
    for (size_t i = 0; i < element_size(form_.scale_type); ++i) {
      to.push_back(static_cast<std::byte>(bits >> (8 * i)));
    }
  }

  const AffineForm& form_;
  AffineBytes& out_;
  bool all_finite_ = true;
};

} // namespace

std::optional<AffineForm> affine_form(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16:
      return std::nullopt;
    case GgmlType::kQ4_0:
    case GgmlType::kQ4_1:
      return AffineForm{4, TensorType::kF16, true};
    case GgmlType::kQ5_0:
    case GgmlType::kQ5_1:
      return AffineForm{5, TensorType::kF16, true};
    case GgmlType::kQ8_0:
      return AffineForm{8, TensorType::kF16, true};
    // A product of an f16 scale and a 6-bit sub-scale needs 17 bits.
    case GgmlType::kQ4_K:
      return AffineForm{4, TensorType::kF32, true};
    case GgmlType::kQ5_K:
      return AffineForm{5, TensorType::kF32, true};
    // Groups of 16: no form of MLX's.
    case GgmlType::kQ2_K:
    case GgmlType::kQ3_K:
    case GgmlType::kQ6_K:
      return AffineForm{8, TensorType::kF32, false};
  }
  return std::nullopt;
}

bool to_affine(GgmlType type, ByteView blocks, AffineBytes& out) {
  const GgmlTypeInfo& info = ggml_type_info(type);
  const AffineForm form = *affine_form(type);
  AffineWriter writer(form, out);
  std::array<float, kMaxBlockElements> values;
  Group group;
  for (; !blocks.empty(); blocks = blocks.subspan(info.block_bytes)) {
    if (!form.exact) {
      dequantize(type, blocks.first(info.block_bytes), values);
    }
    for (size_t j = 0; j < info.block_elements / kGroup; ++j) {
      if (!form.exact) {
        requantized_group(values.data() + j * kGroup, group);
      } else if (info.block_elements == kGroup) {
        legacy_group(type, blocks.data(), group);
      } else {
        k_group(type, blocks.data(), j, group);
      }
      writer.add(group);
    }
  }
  return writer.all_finite();
}

} // namespace ingle
