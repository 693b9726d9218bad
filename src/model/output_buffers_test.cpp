#include "model/output_buffers.h"

#include <thread>

#include <gtest/gtest.h>

namespace ingle {
namespace {

// Where the bytes are, once they are given back.
void* address_of(const mlx::core::allocator::Data& data) {
  return data.buffer().raw_ptr();
}

TEST(OutputBuffers, WhatWasGivenBackIsTakenAgain) {
  const auto buffers = std::make_shared<OutputBuffers>();
  void* first = address_of(buffers->take(1000));
  EXPECT_EQ(address_of(buffers->take(900)), first);
}

TEST(OutputBuffers, LargerOnesAreNotTakenFromSmallerOnes) {
  const auto buffers = std::make_shared<OutputBuffers>();
  void* small = address_of(buffers->take(1000));
  EXPECT_NE(address_of(buffers->take(100000)), small);
}

TEST(OutputBuffers, WhatOutlivesThemIsFreedWithTheLast) {
  auto buffers = std::make_shared<OutputBuffers>();
  const std::weak_ptr<OutputBuffers> watched = buffers;
  {
    const auto data = buffers->take(1000);
    buffers.reset();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

// MLX's stream thread drops the arrays that it was the last to hold.
TEST(OutputBuffers, ThreadsTakeAndGiveBackAtTheSameTime) {
  const auto buffers = std::make_shared<OutputBuffers>();
  const auto work = [&] {
    for (size_t i = 1; i <= 2000; ++i) {
      const auto one = buffers->take(i);
      const auto two = buffers->take(3000 - i);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

} // namespace
} // namespace ingle
