#include "weights/tensor.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(TensorType, NamesGoBothWays) {
  for (int i = 0; i <= static_cast<int>(TensorType::kF64); ++i) {
    const auto type = static_cast<TensorType>(i);
    EXPECT_EQ(parse_tensor_type(to_string(type)), type);
  }
  EXPECT_EQ(to_string(TensorType::kBF16), "BF16");
  EXPECT_EQ(parse_tensor_type("F8_E4M3"), std::nullopt);
  EXPECT_EQ(parse_tensor_type("f16"), std::nullopt);
}

TEST(TensorBytes, CountsAndRefusesOverflow) {
  EXPECT_EQ(tensor_bytes(TensorType::kF16, {3, 5}), 30u);
  EXPECT_EQ(tensor_bytes(TensorType::kF64, {}), 8u);
  EXPECT_EQ(tensor_bytes(TensorType::kU8, {-1}), std::nullopt);
  EXPECT_EQ(
      tensor_bytes(TensorType::kU8, {INT64_MAX, INT64_MAX}), std::nullopt);
  EXPECT_EQ(tensor_bytes(TensorType::kF64, {INT64_MAX, 0, 4}), 0u);
}

TEST(QuoteName, StaysOneShortLine) {
  EXPECT_EQ(quote_name("a.b"), "'a.b'");
  EXPECT_EQ(quote_name("a\nb\x1b'"), "'a\\x0ab\\x1b\\x27'");
  EXPECT_EQ(quote_name(std::string(1000, 'x')).size(), 120u + 5);
}

} // namespace
} // namespace ingle
