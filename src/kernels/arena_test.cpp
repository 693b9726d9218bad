#include "kernels/arena.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <new>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

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

// Or one step would have the system clear a huge page for each layer.
TEST(PageBuffer, ThoseFilledInStepReachHugePagesOneAfterTheOther) {
  constexpr size_t kHugePage = 2 * kMegabyte;
  const auto place = [](const PageBuffer& buffer) {
    return reinterpret_cast<uintptr_t>(buffer.data()) % kHugePage;
  };
  std::vector<PageBuffer> layers;
  std::set<uintptr_t> places;
  for (int i = 0; i < 32; ++i) {
    layers.push_back(PageBuffer::filled_in_step(3 * kMegabyte + 5));
    places.insert(place(layers.back()));
    EXPECT_TRUE(all_are(layers.back(), 0, layers.back().bytes(), 0));
  }
  EXPECT_EQ(places.size(), 32u);
  for (PageBuffer& layer : layers) {
    const uintptr_t before = place(layer);
    std::fill_n(layer.data(), layer.bytes(), std::byte{7});
    layer.grow(5 * kMegabyte);
    EXPECT_EQ(place(layer), before);
    EXPECT_TRUE(all_are(layer, 0, 3 * kMegabyte + 5, 7));
    EXPECT_TRUE(all_are(layer, 3 * kMegabyte + 5, 5 * kMegabyte, 0));
  }
}

#if defined(__linux__)
size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(PageBuffer, FewRowsOfManyLayersTakeLittleMemory) {
  std::vector<PageBuffer> layers;
  const size_t before = resident_bytes();
  for (int i = 0; i < 64; ++i) {
    layers.push_back(PageBuffer::filled_in_step(8 * kMegabyte));
    layers.back().data()[0] = std::byte{7};
  }
  // Two of the 64 begin where a huge page does.
  EXPECT_LT(resident_bytes(), before + 32 * kMegabyte);
}
#endif

} // namespace
} // namespace ingle
