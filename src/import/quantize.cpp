#include "import/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "base/float16.h"

namespace ingle {
namespace {

float load(TensorType type, const std::byte* p) {
  switch (type) {
    case TensorType::kF16:
      return load_f16(p);
    case TensorType::kBF16:
      return bf16_to_f32(load_u16(p));
    default:
      break;
  }
  uint32_t bits = 0;
  for (size_t i = 0; i < sizeof bits; ++i) {
    bits |= static_cast<uint32_t>(p[i]) << (8 * i);
  }
  return std::bit_cast<float>(bits);
}

void store(TensorType type, float value, std::vector<std::byte>& to) {
  const uint32_t bits = type == TensorType::kF16 ? f32_to_f16(value)
      : type == TensorType::kBF16                ? f32_to_bf16(value)
                                  : std::bit_cast<uint32_t>(value);
  for (size_t i = 0; i < element_size(type); ++i) {
    to.push_back(static_cast<std::byte>(bits >> (8 * i)));
  }
}

struct Steps {
  float scale = 0;
  float bias = 0;
};

Steps steps_of(std::span<const float> group, int bits) {
  constexpr float kSmallest = 1e-7f; // of a step
  const auto [low, high] = std::minmax_element(group.begin(), group.end());
  const auto most = static_cast<float>((1 << bits) - 1);
  const bool from_low = std::abs(*low) > std::abs(*high);
  const float size = std::max((*high - *low) / most, kSmallest);
  const float edge = from_low ? *low : *high;
  Steps steps{from_low ? size : -size, 0};
  const float to_zero = std::rint(edge / steps.scale);
  if (to_zero != 0) {
    steps = {edge / to_zero, edge};
  }
  return steps;
}

// Code i at bit i * bits of a little-endian stream.
void pack(
    std::span<const float> group,
    const Steps& steps,
    int bits,
    std::vector<std::byte>& out) {
  const auto most = static_cast<float>((1 << bits) - 1);
  uint32_t pending = 0;
  int count = 0; // bits in `pending`
  for (const float value : group) {
    const float code = std::rint((value - steps.bias) / steps.scale);
    pending |= static_cast<uint32_t>(std::clamp(code, 0.0f, most)) << count;
    for (count += bits; count >= 8; count -= 8) {
      out.push_back(static_cast<std::byte>(pending));
      pending >>= 8;
    }
  }
}

} // namespace

void convert_floats(
    TensorType from,
    ByteView values,
    TensorType to,
    std::vector<std::byte>& out) {
  out.clear();
  const size_t size = element_size(from);
  out.reserve(values.size() / size * element_size(to));
  for (size_t at = 0; at < values.size(); at += size) {
    store(to, load(from, values.data() + at), out);
  }
}

bool quantize(
    TensorType type,
    ByteView values,
    const AffineSpec& spec,
    AffineBytes& out) {
  const size_t size = element_size(type);
  const size_t step = size * static_cast<size_t>(spec.group_size);
  std::vector<float> group(static_cast<size_t>(spec.group_size));
  for (; !values.empty(); values = values.subspan(step)) {
    for (size_t i = 0; i < group.size(); ++i) {
      group[i] = load(type, values.data() + i * size);
      if (!std::isfinite(group[i])) {
        return false;
      }
    }
    const Steps steps = steps_of(group, spec.bits);
    pack(group, steps, spec.bits, out.codes);
    store(type, steps.scale, out.scales);
    store(type, steps.bias, out.biases);
  }
  return true;
}

} // namespace ingle
