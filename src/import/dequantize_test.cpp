#include "import/dequantize.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/float16.h"

namespace ingle {
namespace {

TEST(Float16, EveryValueSurvives) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      EXPECT_EQ(f32_to_f16(value), bits);
    }
  }
}

TEST(Float16, KnownValues) {
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0xfbff), -65504.0f);
  EXPECT_TRUE(std::isinf(f16_to_f32(0x7c00)));
  EXPECT_EQ(bf16_to_f32(0xc040), -3.0f);
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(1 + 0x1p-11f), 0x3c00); // a tie, down
  EXPECT_EQ(f32_to_f16(1 + 0x1.8p-10f), 0x3c02); // a tie, up
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(f32_to_f16(0x1.1p-25f), 0x0001);
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
}

// One block of a byte pattern, with d = 0.0625 and m or dmin = -0.75; the
// figures are those of ggml's own dequantisation (libggml-base 0.25.3): the
// sum of element i times i + 1 (exact), and elements at some places.
struct Golden {
  GgmlType type;
  size_t d;
  size_t m; // 0: none
  double weighted_sum;
  std::vector<float> samples;
};

class GoldenBlock : public testing::TestWithParam<Golden> {};

TEST_P(GoldenBlock, IsWhatGgmlMakesOfIt) {
  const Golden& golden = GetParam();
  const GgmlTypeInfo& info = ggml_type_info(golden.type);
  std::vector<std::byte> block(info.block_bytes);
  for (size_t i = 0; i < block.size(); ++i) {
    block[i] = static_cast<std::byte>(i * 37 + 11 + i * i / 7);
  }
  const auto store_f16 = [&](size_t at, float value) {
    block[at] = static_cast<std::byte>(f32_to_f16(value));
    block[at + 1] = static_cast<std::byte>(f32_to_f16(value) >> 8);
  };
  store_f16(golden.d, 0.0625f);
  if (golden.m != 0) {
    store_f16(golden.m, -0.75f);
  }
  std::vector<float> values(info.block_elements);
  dequantize(golden.type, block, values);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(i + 1);
  }
  EXPECT_EQ(sum, golden.weighted_sum);
  const std::vector<size_t> places = info.block_elements == 32
      ? std::vector<size_t>{0, 1, 17, 31}
      : std::vector<size_t>{0, 17, 45, 100, 131, 190, 222, 255};
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(values[places[i]], golden.samples[i]) << places[i];
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dequantize,
    GoldenBlock,
    testing::Values(
        Golden{
            GgmlType::kQ4_0,
            0,
            0,
            -17.875,
            {-.1875f, .1875f, -.0625f, .125f}},
        Golden{GgmlType::kQ4_1, 0, 2, -120.75, {-.6875f, -.3125f, 0, .1875f}},
        Golden{
            GgmlType::kQ5_0,
            0,
            0,
            10.8125,
            {.875f, -.6875f, -.9375f, .3125f}},
        Golden{GgmlType::kQ5_1, 0, 2, 144.25, {1, -.5625f, .625f, -.125f}},
        Golden{
            GgmlType::kQ8_0,
            0,
            0,
            343.125,
            {5.3125f, 7.6875f, -.1875f, 6.6875f}},
        Golden{
            GgmlType::kQ2_K,
            80,
            82,
            180656.5,
            {2.0625f, 2.25f, 4.0625f, 10.5f, 3, 8.4375f, .75f, 4.875f}},
        Golden{
            GgmlType::kQ3_K,
            108,
            0,
            2033,
            {-1.0625f, 3, -.0625f, 1.5625f, -3, 2.4375f, 0, -1.8125f}},
        Golden{
            GgmlType::kQ4_K,
            0,
            2,
            1265875.0625,
            {75.9375f,
             67.6875f,
             31.0625f,
             39.5625f,
             15.125f,
             47.75f,
             29.3125f,
             28.125f}},
        Golden{
            GgmlType::kQ5_K,
            0,
            2,
            1902555.625,
            {86.25f,
             100.6875f,
             32.375f,
             60.5625f,
             82.3125f,
             54.25f,
             109.375f,
             30}},
        Golden{
            GgmlType::kQ6_K,
            208,
            0,
            -370006.125,
            {156.9375f,
             -110.9375f,
             -3.9375f,
             -230.5625f,
             -21.5625f,
             -18.1875f,
             15.5f,
             53.625f}}),
    [](const auto& test) {
      return std::string(ggml_type_info(test.param.type).name);
    });

TEST(Dequantize, PlainTypes) {
  std::vector<float> values(2);
  dequantize(
      GgmlType::kF32,
      as_bytes(std::string_view("\0\0\x80\x3f\0\0\0\xc0", 8)),
      values);
  EXPECT_EQ(values, (std::vector<float>{1, -2}));
  dequantize(
      GgmlType::kF16, as_bytes(std::string_view("\0\x3c\0\xc0", 4)), values);
  EXPECT_EQ(values, (std::vector<float>{1, -2}));
  dequantize(
      GgmlType::kBF16, as_bytes(std::string_view("\x80\x3f\0\xc0", 4)), values);
  EXPECT_EQ(values, (std::vector<float>{1, -2}));
}

} // namespace
} // namespace ingle
