#include "import/affine.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "import/dequantize.h"
#include "import/testing/gguf_builder.h"

namespace ingle {
namespace {

constexpr int64_t kElements = 64 * kMaxBlockElements;

class AffineTest : public testing::TestWithParam<GgmlType> {
 protected:
  // Random blocks, straight and by way of the affine form.
  void convert(uint32_t seed) {
    const GgmlType type = GetParam();
    const std::string blocks = random_blocks(type, kElements, seed);
    straight_.resize(kElements);
    dequantize(type, as_bytes(blocks), straight_);
    AffineBytes affine;
    ASSERT_TRUE(to_affine(type, as_bytes(blocks), affine));
    form_ = *affine_form(type);
    affine_ = from_affine(
        form_.bits,
        form_.scale_type,
        affine.codes,
        affine.scales,
        affine.biases);
    ASSERT_EQ(affine_.size(), straight_.size());
  }

  AffineForm form_{};
  std::vector<float> straight_;
  std::vector<float> affine_;
};

std::string type_name(const testing::TestParamInfo<GgmlType>& test) {
  return std::string(ggml_type_info(test.param).name);
}

using ExactAffineTest = AffineTest;

TEST_P(ExactAffineTest, EqualsStraightDequantisation) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    convert(seed);
    EXPECT_TRUE(form_.exact);
    EXPECT_EQ(affine_, straight_);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Affine,
    ExactAffineTest,
    testing::Values(
        GgmlType::kQ4_0,
        GgmlType::kQ4_1,
        GgmlType::kQ5_0,
        GgmlType::kQ5_1,
        GgmlType::kQ8_0,
        GgmlType::kQ4_K,
        GgmlType::kQ5_K),
    type_name);

using RequantisedAffineTest = AffineTest;

TEST_P(RequantisedAffineTest, IsWithinHalfAStep) {
  convert(1);
  EXPECT_FALSE(form_.exact);
  for (size_t i = 0; i < straight_.size(); i += kAffineGroup) {
    const auto [low, high] = std::minmax_element(
        straight_.begin() + static_cast<std::ptrdiff_t>(i),
        straight_.begin() + static_cast<std::ptrdiff_t>(i + kAffineGroup));
    const float bound = (*high - *low) / 255 * 0.501f +
        std::max(std::abs(*low), std::abs(*high)) * 1e-6f;
    for (size_t j = i; j < i + kAffineGroup; ++j) {
      ASSERT_LE(std::abs(affine_[j] - straight_[j]), bound) << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Affine,
    RequantisedAffineTest,
    testing::Values(GgmlType::kQ2_K, GgmlType::kQ3_K, GgmlType::kQ6_K),
    type_name);

TEST(Affine, PlainTypesHaveNoForm) {
  for (const GgmlType type :
       {GgmlType::kF32, GgmlType::kF16, GgmlType::kBF16}) {
    EXPECT_FALSE(affine_form(type).has_value());
  }
}

// The worked example of docs/formats/gguf-import.md.
TEST(Affine, WorkedExample) {
  std::string block("\x00\x2c\x00\xba", 4); // d = 0.0625, m = -0.75
  for (int i = 0; i < 16; ++i) {
    block += static_cast<char>((15 - i) << 4 | i);
  }
  AffineBytes affine;
  ASSERT_TRUE(to_affine(GgmlType::kQ4_1, as_bytes(block), affine));
  EXPECT_EQ(
      as_text(affine.codes),
      "\x10\x32\x54\x76\x98\xba\xdc\xfe\xef\xcd\xab\x89\x67\x45\x23\x01");
  EXPECT_EQ(as_text(affine.scales), std::string_view("\x00\x2c", 2));
  EXPECT_EQ(as_text(affine.biases), std::string_view("\x00\xba", 2));
}

TEST(Affine, ScaleThatIsNotFiniteIsRefused) {
  AffineBytes affine;
  std::string block(34, '\1');
  block[1] = 0x7c; // d is infinite or NaN
  EXPECT_FALSE(to_affine(GgmlType::kQ8_0, as_bytes(block), affine));
  block[1] = 0x60; // d = 513: -128 d is more than f16 can hold
  EXPECT_FALSE(to_affine(GgmlType::kQ8_0, as_bytes(block), affine));
  block[1] = 0x5c;
  EXPECT_TRUE(to_affine(GgmlType::kQ8_0, as_bytes(block), affine));
  for (const GgmlType type : {GgmlType::kQ2_K, GgmlType::kQ6_K}) {
    std::string k_block = random_blocks(type, kMaxBlockElements, 1);
    k_block[type == GgmlType::kQ2_K ? 81 : 209] = 0x7e;
    EXPECT_FALSE(to_affine(type, as_bytes(k_block), affine));
  }
}

} // namespace
} // namespace ingle
