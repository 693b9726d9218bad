#include "kernels/logits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/isa.h"
#include "kernels/testing/random_weights.h"

namespace ingle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Parameter: threads; 0: no pool.
class LogitPassesTest : public testing::TestWithParam<int> {
 protected:
  const std::unique_ptr<ThreadPool> pool =
      GetParam() == 0 ? nullptr : std::make_unique<ThreadPool>(GetParam());
  const LogitPasses passes{kernel_set(supported_isas().back()), pool.get()};
  std::mt19937 random{5};
};

INSTANTIATE_TEST_SUITE_P(Threads, LogitPassesTest, testing::Values(0, 1, 2, 5));

constexpr int kSizes[] = {1, 255, 4096, 4097, 50'000};

TEST_P(LogitPassesTest, FirstOfTheLargestIsFoundWhereverItIs) {
  for (const int size : kSizes) {
    auto logits = random_floats(random, size);
    for (const int at : {0, size / 2, size - 1}) {
      logits[static_cast<size_t>(at)] += 100;
      logits.back() = std::max(logits.back(), logits[static_cast<size_t>(at)]);
      EXPECT_EQ(
          passes.first_of_largest(logits),
          std::max_element(logits.begin(), logits.end()) - logits.begin());
    }
  }
}

TEST_P(LogitPassesTest, LogitsThatAreNoNumbersHaveNoLargest) {
  EXPECT_FALSE(passes.first_of_largest({}));
  for (const int size : kSizes) {
    for (const float bad : {std::nanf(""), kInfinity}) {
      auto logits = random_floats(random, size);
      logits[static_cast<size_t>(size / 2)] = bad;
      EXPECT_FALSE(passes.first_of_largest(logits));
    }
    const std::vector<float> none(static_cast<size_t>(size), -kInfinity);
    EXPECT_FALSE(passes.first_of_largest(none));
  }
}

TEST_P(LogitPassesTest, SumsAreThoseOfOneThreadAndNearTheExact) {
  const LogitPasses alone(kernel_set(supported_isas().back()));
  for (const int size : kSizes) {
    const auto logits = random_floats(random, size);
    const float peak = *std::max_element(logits.begin(), logits.end());
    const auto blocks = passes.sums_of_blocks(logits, peak, 1.5f, 0);
    EXPECT_EQ(blocks, alone.sums_of_blocks(logits, peak, 1.5f, 0));
    EXPECT_EQ(std::ssize(blocks), (size + 255) / 256);
    const float floors[kFloors] = {-kInfinity, 0, 0.5f};
    const auto sums = passes.exp_sums(logits, peak, floors);
    EXPECT_EQ(sums, alone.exp_sums(logits, peak, floors));

    double exact_blocks = 0;
    double exact[kFloors] = {};
    for (const float logit : logits) {
      const double below = static_cast<double>(logit) - peak;
      exact_blocks += logit >= 0 ? std::exp(1.5 * below) : 0;
      for (size_t i = 0; i < kFloors; ++i) {
        exact[i] += logit >= floors[i] ? std::exp(below) : 0;
      }
    }
    EXPECT_NEAR(
        std::accumulate(blocks.begin(), blocks.end(), 0.0),
        exact_blocks,
        2e-6 * exact_blocks);
    for (size_t i = 0; i < kFloors; ++i) {
      EXPECT_NEAR(sums[i], exact[i], 2e-6 * exact[i]);
    }
    EXPECT_NEAR(passes.exp_sum(logits, peak), exact[0], 2e-6 * exact[0]);
  }
}

TEST_P(LogitPassesTest, WhatIsBetweenIsFoundInOrder) {
  for (const int size : kSizes) {
    const auto logits = random_floats(random, size);
    std::vector<int32_t> expected;
    for (int i = 0; i < size; ++i) {
      const float logit = logits[static_cast<size_t>(i)];
      if (logit >= -0.5f && logit < 1) {
        expected.push_back(i);
      }
    }
    EXPECT_EQ(passes.find_between(logits, -0.5f, 1), expected);
  }
}

} // namespace
} // namespace ingle
