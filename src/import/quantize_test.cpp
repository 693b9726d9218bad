#include "import/quantize.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include <gtest/gtest.h>

#include "base/float16.h"

namespace ingle {
namespace {

std::vector<float> normal_values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

ByteView bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// Codes of a group, read bit by bit.
uint32_t code_at(const std::vector<std::byte>& stream, size_t bit, int bits) {
  uint32_t code = 0;
  for (int i = 0; i < bits; ++i, ++bit) {
    const auto byte = static_cast<uint32_t>(stream[bit / 8]);
    code |= (byte >> bit % 8 & 1) << i;
  }
  return code;
}

float f32_at(const std::vector<std::byte>& bytes, size_t i) {
  float value = 0;
  std::memcpy(&value, bytes.data() + 4 * i, sizeof value);
  return value;
}

TEST(Quantize, ValuesAreWithinHalfAStepOrAtTheEndOfTheRange) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      const auto values = normal_values(512, static_cast<unsigned>(bits));
      AffineBytes out;
      ASSERT_TRUE(
          quantize(TensorType::kF32, bytes_of(values), {bits, group}, out));
      const auto per_group = static_cast<size_t>(group);
      ASSERT_EQ(
          out.codes.size(), values.size() * static_cast<size_t>(bits) / 8);
      ASSERT_EQ(out.scales.size(), values.size() / per_group * 4);
      ASSERT_EQ(out.biases.size(), out.scales.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const float scale = f32_at(out.scales, i / per_group);
        const uint32_t code =
            code_at(out.codes, i * static_cast<size_t>(bits), bits);
        const float stored = scale * static_cast<float>(code) +
            f32_at(out.biases, i / per_group);
        // Nudged so that 0 is a step, the range may end a step too early.
        const bool is_last = code == (1u << bits) - 1;
        EXPECT_LE(
            std::abs(stored - values[i]),
            std::abs(scale) * (is_last ? 1.01f : 0.501f))
            << bits << " bits by " << group;
      }
    }
  }
}

// docs/formats/quantised-folder.md.
TEST(Quantize, WorkedExampleOfTheDocument) {
  std::vector<float> values(32, 0.5f);
  values[0] = -1.5f;
  AffineBytes out;
  ASSERT_TRUE(quantize(TensorType::kF32, bytes_of(values), {2, 32}, out));
  EXPECT_EQ(f32_at(out.scales, 0), 0.75f);
  EXPECT_EQ(f32_at(out.biases, 0), -1.5f);
  std::vector<std::byte> codes(8, std::byte{0xff});
  codes[0] = std::byte{0xfc};
  EXPECT_EQ(out.codes, codes);
}

TEST(Quantize, ZeroStaysZero) {
  auto values = normal_values(64, 1);
  values[10] = 0;
  AffineBytes out;
  ASSERT_TRUE(quantize(TensorType::kF32, bytes_of(values), {4, 64}, out));
  const auto code = static_cast<float>(code_at(out.codes, 40, 4));
  EXPECT_NEAR(f32_at(out.scales, 0) * code + f32_at(out.biases, 0), 0, 1e-6f);
  const std::vector<float> zeros(64);
  AffineBytes none;
  ASSERT_TRUE(quantize(TensorType::kF32, bytes_of(zeros), {4, 64}, none));
  EXPECT_EQ(f32_at(none.biases, 0), 0);
  EXPECT_EQ(none.codes, std::vector<std::byte>(32));
}

TEST(Quantize, ValuesThatAreNotFiniteAreRefused) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    auto values = normal_values(64, 2);
    values[63] = bad;
    AffineBytes out;
    EXPECT_FALSE(quantize(TensorType::kF32, bytes_of(values), {4, 32}, out));
  }
}

TEST(Quantize, FloatsAreConvertedToTheNearest) {
  const std::vector<float> values = {1, -2.5f, 1 + 0x1p-8f, 1 + 0x1.8p-7f, 0};
  std::vector<std::byte> halves;
  convert_floats(TensorType::kF32, bytes_of(values), TensorType::kBF16, halves);
  std::vector<float> expected = {1, -2.5f, 1, 1 + 0x1p-6f, 0}; // ties to even
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(bf16_to_f32(load_u16(halves.data() + 2 * i)), expected[i]);
  }
  std::vector<std::byte> back;
  convert_floats(TensorType::kBF16, halves, TensorType::kF32, back);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(f32_at(back, i), expected[i]);
  }
}

TEST(Quantize, NanStaysNanInBf16) {
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(nan))));
  EXPECT_TRUE(
      std::isinf(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::max()))));
}

} // namespace
} // namespace ingle
