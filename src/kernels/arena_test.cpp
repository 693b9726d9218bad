#include "kernels/arena.h"

#include <algorithm>
#include <new>

#include <gtest/gtest.h>

namespace ingle {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

bool all_are(const PageBuffer& buffer, size_t begin, size_t end, int value) {
  return std::all_of(
      buffer.data() + begin, buffer.data() + end, [&](std::byte byte) {
        return byte == static_cast<std::byte>(value);
      });
}

TEST(PageBuffer, GrowingKeepsWhatItHoldsAndAddsZeros) {
  PageBuffer buffer(100);
  std::fill_n(buffer.data(), 100, std::byte{7});
  for (const size_t bytes : {kMegabyte, 3 * kMegabyte + 5, 40 * kMegabyte}) {
    buffer.grow(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_TRUE(all_are(buffer, 0, 100, 7));
    EXPECT_TRUE(all_are(buffer, 100, bytes, 0));
  }
  buffer.grow(1);
  EXPECT_EQ(buffer.bytes(), 40 * kMegabyte);
  PageBuffer empty;
  empty.grow(10);
  EXPECT_TRUE(all_are(empty, 0, 10, 0));
}

TEST(PageBuffer, WhatCanNotGrowIsAsItWas) {
  PageBuffer buffer(100);
  std::fill_n(buffer.data(), 100, std::byte{7});
  EXPECT_THROW(buffer.grow(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(buffer.bytes(), 100u);
  EXPECT_TRUE(all_are(buffer, 0, 100, 7));
}

TEST(PageBuffer, ReleasedPagesAreZeroAndThoseBeforeStay) {
  PageBuffer buffer(3 * kMegabyte);
  std::fill_n(buffer.data(), buffer.bytes(), std::byte{7});
  buffer.release(kMegabyte + 1);
  EXPECT_TRUE(all_are(buffer, 0, kMegabyte + 1, 7));
  EXPECT_TRUE(all_are(buffer, 2 * kMegabyte, 3 * kMegabyte, 0));
  buffer.release(buffer.bytes());
  EXPECT_TRUE(all_are(buffer, 0, kMegabyte + 1, 7));
}

} // namespace
} // namespace ingle
