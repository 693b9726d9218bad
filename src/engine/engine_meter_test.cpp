// What is counted of generations, by what their sinks are told.
#include "engine/engine_meter.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/recording_sink.h"

namespace ingle {
namespace {

using testing::ElementsAre;
using testing::Pair;

class ManualClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return now_;
  }
  std::chrono::milliseconds since_epoch() const override {
    return {};
  }
  void advance(std::chrono::milliseconds time) {
    now_ += time;
  }

 private:
  std::chrono::steady_clock::time_point now_;
};

class EngineMeterTest : public testing::Test {
 protected:
  static PrefillStep piece(int processed, int total, int cached = 0) {
    PrefillStep step;
    step.processed = processed;
    step.total = total;
    step.cached = cached;
    return step;
  }
  static GenerationDelta token() {
    return {{{7, 0, {}}}, "x"};
  }
  static GenerationEnd end_of(int generated, FinishReason reason) {
    GenerationEnd end;
    end.reason = reason;
    end.stats.generated_tokens = generated;
    return end;
  }
  // Queued, prefilling, decoding.
  std::vector<size_t> now() const {
    const EngineStats stats = meter_.read();
    return {stats.queued, stats.prefilling, stats.decoding};
  }
  static size_t bucket_of(const TimeHistogram& times) {
    const auto counts = times.counts();
    return static_cast<size_t>(std::ranges::find(counts, 1u) - counts.begin());
  }

  ManualClock clock_;
  EngineMeter meter_{EngineStats{}, clock_};
  std::shared_ptr<RecordingSink> client_ = std::make_shared<RecordingSink>();
};

TEST_F(EngineMeterTest, GenerationIsInOnePhaseAtATime) {
  EXPECT_THAT(now(), ElementsAre(0, 0, 0));
  const auto first = meter_.watch(client_);
  const auto second = meter_.watch(std::make_shared<RecordingSink>());
  EXPECT_THAT(now(), ElementsAre(2, 0, 0));
  first->on_prefill(piece(512, 600));
  EXPECT_THAT(now(), ElementsAre(1, 1, 0));
  first->on_prefill(piece(600, 600));
  EXPECT_THAT(now(), ElementsAre(1, 0, 1));
  first->on_delta(token());
  first->on_end(end_of(1, FinishReason::kLength));
  EXPECT_THAT(now(), ElementsAre(1, 0, 0));
  second->on_end(end_of(0, FinishReason::kCancelled));
  EXPECT_THAT(now(), ElementsAre(0, 0, 0));
}

TEST_F(EngineMeterTest, PromptIsReadOrCachedAndEachTokenCountsOnce) {
  const auto sink = meter_.watch(client_);
  sink->on_prefill(piece(812, 1000, 300));
  sink->on_prefill(piece(1000, 1000, 300));
  EXPECT_EQ(meter_.read().cached_tokens, 300u);
  EXPECT_EQ(meter_.read().prompt_tokens, 700u);
}

TEST_F(EngineMeterTest, FinalEndOfSequenceIsGenerated) {
  const auto sink = meter_.watch(client_);
  sink->on_prefill(piece(10, 10));
  sink->on_delta(token());
  sink->on_delta(token());
  EXPECT_EQ(meter_.read().generated_tokens, 2u);
  sink->on_delta({{}, "the rest"}); // held back; no token of its own
  sink->on_end(end_of(3, FinishReason::kStop));
  EXPECT_EQ(meter_.read().generated_tokens, 3u);
}

TEST_F(EngineMeterTest, EndsCountByReason) {
  for (const auto reason :
       {FinishReason::kStop,
        FinishReason::kLength,
        FinishReason::kLength,
        FinishReason::kToolCalls,
        FinishReason::kCancelled}) {
    meter_.watch(client_)->on_end(end_of(0, reason));
  }
  meter_.watch(client_)->on_end({Status::internal("broke"), {}, {}});
  const FinishCounts finished = meter_.read().finished;
  EXPECT_EQ(finished.stop, 1u);
  EXPECT_EQ(finished.length, 2u);
  EXPECT_EQ(finished.tool_calls, 1u);
  EXPECT_EQ(finished.cancelled, 1u);
  EXPECT_EQ(finished.failed, 1u);
  EXPECT_EQ(meter_.read().request.count(), 6u);
}

TEST_F(EngineMeterTest, TimesAreFromQueueingAndBetweenTokens) {
  using std::chrono::milliseconds;
  const auto sink = meter_.watch(client_);
  clock_.advance(milliseconds(700));
  PrefillStep step = piece(10, 10);
  step.elapsed_ms = 200;
  sink->on_prefill(step);
  sink->on_delta(token());
  clock_.advance(milliseconds(20));
  sink->on_delta(token());
  clock_.advance(milliseconds(80));
  sink->on_delta({{}, "text alone is no token"});
  sink->on_end(end_of(2, FinishReason::kLength));

  const EngineStats stats = meter_.read();
  EXPECT_DOUBLE_EQ(stats.queue_wait.sum(), 0.5);
  EXPECT_DOUBLE_EQ(stats.first_token.sum(), 0.7);
  EXPECT_DOUBLE_EQ(stats.between_tokens.sum(), 0.02);
  EXPECT_DOUBLE_EQ(stats.request.sum(), 0.8);
  for (const TimeHistogram* times :
       {&stats.queue_wait,
        &stats.first_token,
        &stats.between_tokens,
        &stats.request}) {
    EXPECT_EQ(times->count(), 1u);
  }
  // 0.02 and 0.5 are bounds: each is the most of its bucket.
  EXPECT_EQ(kTokenSeconds.at(bucket_of(stats.between_tokens)), 0.02);
  EXPECT_EQ(kRequestSeconds.at(bucket_of(stats.queue_wait)), 0.5);
}

TEST_F(EngineMeterTest, WhatIsOverAllBoundsHasABucket) {
  meter_.watch(client_);
  const auto sink = meter_.watch(client_);
  clock_.advance(std::chrono::hours(1));
  sink->on_end(end_of(0, FinishReason::kCancelled));
  EXPECT_EQ(meter_.read().request.counts().back(), 1u);
}

TEST_F(EngineMeterTest, RefusalsCountByTheCodeThatClientsGet) {
  meter_.count_refusal(Status::overloaded("full").with_reason("queue_full"));
  meter_.count_refusal(Status::overloaded("full").with_reason("queue_full"));
  meter_.count_refusal(Status::invalid_request("top_p"));
  EXPECT_THAT(
      meter_.read().refused,
      ElementsAre(Pair("invalid_request", 1), Pair("queue_full", 2)));
}

TEST_F(EngineMeterTest, ClientHearsWhatTheEngineSaid) {
  const auto sink = meter_.watch(client_);
  sink->on_prefill(piece(10, 10, 4));
  sink->on_delta(token());
  sink->on_end(end_of(1, FinishReason::kLength));
  ASSERT_EQ(client_->prefills().size(), 1u);
  EXPECT_EQ(client_->prefills()[0].cached, 4);
  EXPECT_EQ(client_->text(), "x");
  EXPECT_EQ(client_->wait().reason, FinishReason::kLength);
}

} // namespace
} // namespace ingle
