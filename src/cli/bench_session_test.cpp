#include "cli/bench_session.h"

#include <gtest/gtest.h>

#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

class BenchSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_tiny_llama(*fs_, "/tiny", {.tokenizer = true}).is_ok());
    auto session =
        BenchSession::load(*fs_, clock_, "/tiny", {}, stop_.get_token(), {});
    ASSERT_TRUE(session.is_ok()) << session.status().message();
    session_.emplace(std::move(session).value());
  }

  Measurement measure(const BenchTest& test, int repeat = 2) {
    auto measured = session_->measure(test, repeat, on_progress_);
    EXPECT_TRUE(measured.is_ok()) << measured.status().message();
    return measured.is_ok() ? std::move(measured).value() : Measurement();
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  SystemClock clock_;
  std::stop_source stop_;
  std::optional<BenchSession> session_;
  std::vector<std::pair<uint64_t, uint64_t>> progress_;
  BenchSession::OnProgress on_progress_ = [this](auto done, auto total) {
    progress_.emplace_back(done, total);
  };
};

TEST_F(BenchSessionTest, EachRepeatGivesARate) {
  const Measurement prefill = measure({.prompt = 20}, 3);
  EXPECT_EQ(prefill.rates.size(), 3u);
  const Measurement decode = measure({.gen = 5}, 3);
  EXPECT_EQ(decode.rates.size(), 3u);
  for (const double rate : decode.rates) {
    EXPECT_GT(rate, 0);
  }
}

TEST_F(BenchSessionTest, SharesOfADecodeStepAreShares) {
  for (const bool sampled : {false, true}) {
    const Measurement decode =
        measure({.gen = 8, .depth = 16, .sampled = sampled});
    EXPECT_GT(decode.sampler_percent, 0);
    EXPECT_GT(decode.overhead_percent, decode.sampler_percent);
    EXPECT_LT(decode.overhead_percent, 100);
  }
}

TEST_F(BenchSessionTest, RowsDecodeTogetherAtAnyDepth) {
  // Deeper, shallower, deeper again: what has been read serves again.
  for (const int depth : {40, 8, 0, 24}) {
    for (const int batch : {1, 4}) {
      const Measurement decode =
          measure({.gen = 6, .depth = depth, .batch = batch}, 1);
      ASSERT_EQ(decode.rates.size(), 1u);
      EXPECT_GT(decode.rates[0], 0);
    }
  }
}

TEST_F(BenchSessionTest, ContextOfTheModelIsNoLimit) {
  constexpr int kContext = 512; // the tiny model's
  EXPECT_EQ(measure({.prompt = kContext + 100}, 1).rates.size(), 1u);
  EXPECT_EQ(measure({.gen = 4, .depth = kContext + 100}, 1).rates.size(), 1u);
}

TEST_F(BenchSessionTest, ProgressNeverPassesItsTotal) {
  measure({.prompt = 600});
  measure({.gen = 40, .depth = 30, .batch = 2});
  ASSERT_FALSE(progress_.empty());
  for (const auto& [done, total] : progress_) {
    EXPECT_GT(done, 0u);
    EXPECT_LE(done, total);
  }
}

TEST_F(BenchSessionTest, StopEndsAMeasurement) {
  stop_.request_stop();
  for (const BenchTest& test :
       {BenchTest{.prompt = 8}, BenchTest{.gen = 4, .depth = 8}}) {
    EXPECT_EQ(
        session_->measure(test, 1, on_progress_).status().code(),
        StatusCode::kCancelled);
  }
}

} // namespace
} // namespace ingle
