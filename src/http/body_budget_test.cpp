#include "http/body_budget.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(BodyBudget, SharesGrowUntilItIsUsedUp) {
  BodyBudget budget(100);
  BodyBudget::Share first(budget);
  BodyBudget::Share second(budget);
  EXPECT_TRUE(first.grow_to(60));
  EXPECT_TRUE(first.grow_to(50)); // holds more already
  EXPECT_FALSE(second.grow_to(41));
  EXPECT_TRUE(second.grow_to(40));
  EXPECT_FALSE(first.grow_to(61));
  second.release();
  EXPECT_TRUE(first.grow_to(100));
}

TEST(BodyBudget, ShareIsGivenBackAtItsEnd) {
  BodyBudget budget(10);
  for (int i = 0; i < 3; ++i) {
    BodyBudget::Share share(budget);
    EXPECT_TRUE(share.grow_to(10));
  }
}

TEST(BodyBudget, ManyThreadsNeverHoldMoreThanThereIs) {
  BodyBudget budget(10);
  std::atomic<int> held{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        BodyBudget::Share share(budget);
        if (share.grow_to(4)) {
          EXPECT_LE(++held, 2);
          --held;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  BodyBudget::Share all(budget);
  EXPECT_TRUE(all.grow_to(10));
}

} // namespace
} // namespace ingle
