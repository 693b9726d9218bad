#include "base/stopwatch.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace ingle {
namespace {

using std::chrono::seconds;

class ManualClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return now_;
  }
  std::chrono::milliseconds since_epoch() const override {
    return {};
  }
  void advance(seconds by) {
    now_ += by;
  }

 private:
  std::chrono::steady_clock::time_point now_;
};

TEST(StopwatchTest, WhatIsTimedAddsUpAndTheRestDoesNot) {
  ManualClock clock;
  Stopwatch watch(clock);
  EXPECT_EQ(watch.total(), seconds(0));
  EXPECT_EQ(
      watch.time([&] {
        clock.advance(seconds(2));
        return 7;
      }),
      7);
  clock.advance(seconds(5));
  watch.time([&] { clock.advance(seconds(1)); });
  EXPECT_EQ(watch.total(), seconds(3));
}

TEST(StopwatchTest, TimeUntilAnExceptionCounts) {
  ManualClock clock;
  Stopwatch watch(clock);
  const auto fail = [&] {
    clock.advance(seconds(2));
    throw std::runtime_error("x");
  };
  EXPECT_THROW(watch.time(fail), std::runtime_error);
  EXPECT_EQ(watch.total(), seconds(2));
}

} // namespace
} // namespace ingle
