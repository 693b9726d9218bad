#include "kernels/testing/random_weights.h"

#include <bit>
#include <cstring>

#include "base/float16.h"

namespace ingle {
namespace {

// What stands in a file for `value`, and the value that it then is.
struct Stored {
  uint32_t bits = 0;
  float value = 0;
};

Stored store(float value, FloatType type) {
  switch (type) {
    case FloatType::kF16: {
      const uint16_t bits = f32_to_f16(value);
      return {bits, f16_to_f32(bits)};
    }
    case FloatType::kBF16: {
      const uint32_t bits = std::bit_cast<uint32_t>(value) >> 16;
      return {bits, bf16_to_f32(static_cast<uint16_t>(bits))};
    }
    case FloatType::kE8M0: {
      const uint32_t bits = std::bit_cast<uint32_t>(value) >> 23 & 255;
      return {bits, std::bit_cast<float>(bits << 23)};
    }
    case FloatType::kF32:
      break;
  }
  return {std::bit_cast<uint32_t>(value), value};
}

// Bytes that start at an odd address.
class OddBytes {
 public:
  OddBytes() : bytes_(1) {}
  void put(uint32_t bits, size_t size) {
    const size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, &bits, size);
  }
  std::byte* data() {
    return bytes_.data() + 1;
  }
  void resize(size_t size) {
    bytes_.resize(size + 1);
  }

 private:
  std::vector<std::byte> bytes_;
};

} // namespace

std::vector<float> random_floats(std::mt19937& random, int count) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

RandomMatrix random_matrix(
    std::mt19937& random,
    Arena& arena,
    int rows,
    int columns,
    int bits,
    int group_size,
    FloatType type) {
  RandomMatrix m;
  m.values.resize(static_cast<size_t>(rows) * static_cast<size_t>(columns));
  std::normal_distribution<float> normal;
  OddBytes scales;
  OddBytes biases;
  if (bits == 0) {
    for (float& value : m.values) {
      const Stored stored = store(normal(random), type);
      scales.put(stored.bits, float_size(type));
      value = stored.value;
    }
    m.packed = pack_dense(arena, rows, columns, type, scales.data());
    return m;
  }
  OddBytes weight;
  weight.resize(m.values.size() * static_cast<size_t>(bits) / 8);
  std::uniform_int_distribution<uint32_t> any(0, (1u << bits) - 1);
  Stored scale;
  Stored bias;
  for (size_t i = 0; i < m.values.size(); ++i) {
    if (i % static_cast<size_t>(group_size) == 0) {
      scale = store(normal(random) / 16, type);
      bias = store(normal(random), type);
      scales.put(scale.bits, float_size(type));
      biases.put(bias.bits, float_size(type));
    }
    const uint32_t q = any(random);
    for (size_t bit = 0; bit < static_cast<size_t>(bits); ++bit) {
      const size_t at = i * static_cast<size_t>(bits) + bit;
      weight.data()[at / 8] |= static_cast<std::byte>((q >> bit & 1) << at % 8);
    }
    m.values[i] = type == FloatType::kE8M0
        ? scale.value * kMxfp4Values[q]
        : scale.value * static_cast<float>(q) + bias.value;
  }
  m.packed = pack_quantized(
      arena,
      rows,
      columns,
      bits,
      group_size,
      type,
      {weight.data(), scales.data(), biases.data()});
  return m;
}

} // namespace ingle
