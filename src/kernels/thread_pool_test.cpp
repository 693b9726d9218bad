#include "kernels/thread_pool.h"

#include <chrono>
#include <numeric>

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(ThreadPool, EveryThreadRunsEachRegionOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    std::vector<int> runs(static_cast<size_t>(threads));
    for (int i = 0; i < 100; ++i) {
      pool.run([&](int thread) { ++runs[static_cast<size_t>(thread)]; });
    }
    EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(threads), 100));
  }
}

TEST(ThreadPool, WhatWasWrittenBeforeABarrierIsSeenAfterIt) {
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    const ThreadPool::Step step(pool);
    std::vector<int> values(static_cast<size_t>(threads));
    std::vector<int> sums(static_cast<size_t>(threads));
    for (int round = 1; round <= 200; ++round) {
      pool.run([&](int thread) {
        const auto mine = static_cast<size_t>(thread);
        values[mine] = round;
        pool.barrier(thread);
        sums[mine] = std::accumulate(values.begin(), values.end(), 0);
        pool.barrier(thread);
      });
      ASSERT_EQ(
          sums,
          std::vector<int>(static_cast<size_t>(threads), round * threads));
    }
  }
}

TEST(ThreadPool, RegionsStartAfterThreadsHaveGoneToSleep) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.run([&](int) { ++runs; });
  }
  EXPECT_EQ(runs, 15);
}

TEST(ThreadPool, StepsMayBeNestedAndLeftForLong) {
  ThreadPool pool(2);
  std::atomic<int> runs{0};
  for (int i = 0; i < 5; ++i) {
    const ThreadPool::Step outer(pool);
    {
      const ThreadPool::Step inner(pool);
      pool.run([&](int) { ++runs; });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.run([&](int) { ++runs; });
  }
  EXPECT_EQ(runs, 20);
}

TEST(ThreadPool, SharesCoverAllOnceAndInOrder) {
  for (const int count : {0, 1, 5, 16, 1000}) {
    for (const int threads : {1, 2, 3, 7}) {
      int end = 0;
      for (int t = 0; t < threads; ++t) {
        const Share share = share_of(count, t, threads);
        EXPECT_EQ(share.begin, end);
        end = share.end;
      }
      EXPECT_EQ(end, count);
    }
  }
}

} // namespace
} // namespace ingle
