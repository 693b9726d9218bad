#include "cli/progress_bar.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

class SetClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return time;
  }
  std::chrono::milliseconds since_epoch() const override {
    return {};
  }
  std::chrono::steady_clock::time_point time;
};

class ProgressBarTest : public testing::Test {
 protected:
  SetClock clock_;
  std::string shown_;
  ProgressBar bar_{"loading", clock_, [this](std::string_view text) {
                     shown_ += text;
                   }};
};

TEST_F(ProgressBarTest, NothingIsShownOfShortWork) {
  clock_.time += ProgressBar::kDelay - std::chrono::milliseconds(1);
  bar_.update(1, 2);
  bar_.update(2, 2);
  bar_.finish();
  EXPECT_EQ(shown_, "");
}

TEST_F(ProgressBarTest, LongWorkIsDrawnInPlaceAndErasedAtTheEnd) {
  clock_.time += ProgressBar::kDelay;
  bar_.update(1, 2);
  EXPECT_EQ(shown_, "\rloading [###############               ]  50%");
  bar_.update(1001, 2000); // the same percentage
  bar_.finish();
  EXPECT_EQ(shown_, "\rloading [###############               ]  50%\r\033[K");
}

TEST_F(ProgressBarTest, UpdateAfterTheEndIsNotShown) {
  clock_.time += ProgressBar::kDelay;
  bar_.finish();
  bar_.update(1, 2);
  EXPECT_EQ(shown_, "");
}

TEST_F(ProgressBarTest, NothingToDoAndMoreThanAllAreAll) {
  clock_.time += ProgressBar::kDelay;
  bar_.update(0, 0);
  EXPECT_TRUE(shown_.ends_with("100%"));
  shown_.clear();
  bar_.update(1, 4);
  bar_.update(~uint64_t{0}, 4);
  EXPECT_TRUE(shown_.ends_with("100%"));
}

TEST(ProgressBarWithoutTerminalTest, DrawsNothing) {
  SetClock clock;
  ProgressBar bar("loading", clock, {});
  clock.time += ProgressBar::kDelay;
  bar.update(1, 2);
  bar.finish();
}

} // namespace
} // namespace ingle
