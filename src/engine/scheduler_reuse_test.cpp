// What generations take over of each other, and what is left of them.
#include <new>

#include <gtest/gtest.h>

#include "engine/testing/scheduler_fixture.h"
#include "model/testing/golden_models.h"

namespace ingle {
namespace {

// With a state that keeps every row, with windows, and a recurrent one.
struct Kind {
  const char* file;
  const char* model;
};

class SchedulerReuseTest
    : public SchedulerFixture<testing::TestWithParam<Kind>> {
 protected:
  void SetUp() override {
    auto model = load_golden(
        {.numerics = Numerics::kNear, .threads = 1},
        golden_case_in(GetParam().file, GetParam().model));
    ASSERT_TRUE(model.is_ok()) << model.status().message();
    model_ = *std::move(model);
    served_->context_length = 4096;
    served_->vocab_size = model_->config().vocab_size;
    reset({});
  }

  void reset(SchedulerOptions options) {
    serve(*model_, options);
  }

  // Texts of a salt are each other's prefixes.
  static std::vector<TokenId> text(int n, int salt = 0) {
    std::vector<TokenId> ids;
    for (int i = 0; i < n; ++i) {
      ids.push_back((i * 53 + salt * 17 + 3) % 250);
    }
    return ids;
  }
  // A text that others share, and then one of its own.
  static std::vector<TokenId> text_and(int shared, int own, int salt) {
    auto ids = text(shared);
    for (const TokenId id : text(own, salt)) {
      ids.push_back(id);
    }
    return ids;
  }

  static GenerationRequest request(std::vector<TokenId> ids, int max_tokens) {
    GenerationRequest made;
    made.prompt = std::move(ids);
    made.max_tokens = max_tokens;
    made.ignore_eos = true;
    return made;
  }

  std::vector<TokenId> cold(GenerationRequest made) {
    PromptCache none(0);
    Scheduler scheduler(*model_, served_, {}, clock_, none);
    const auto sink = std::make_shared<RecordingSink>();
    scheduler.add({1, std::move(made), 1, sink});
    while (scheduler.is_busy()) {
      scheduler.step();
    }
    return sink->ids();
  }

  // Tokens of the prompt that the model has read for it.
  static int read(RecordingSink& sink) {
    const GenerationStats stats = sink.wait().stats;
    return stats.prompt_tokens - stats.cached_tokens;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    SchedulerReuseTest,
    testing::Values(
        Kind{"tiny_families.json", "llama_4bit"},
        Kind{"tiny_families.json", "gemma3_text_4bit"},
        Kind{"tiny_hybrid.json", "qwen3_5_4bit"}),
    [](const auto& made) { return std::string(made.param.model); });

// Acceptance 86: also of a model that forgets, since the answer is gone on
// from.
TEST_P(SchedulerReuseTest, batch_prefix_reuse) {
  const auto first = start(request(text(100), 10));
  run();
  auto next = text(100);
  for (const TokenId id : first->ids()) {
    next.push_back(id);
  }
  next.push_back(7);
  const auto second = start(request(next, 10));
  run();
  EXPECT_EQ(read(*second), 2);
  EXPECT_EQ(second->wait().stats.cached_from, CachedFrom::kEntry);
  EXPECT_EQ(second->ids(), cold(request(next, 10)));
  EXPECT_EQ(cache_.stats().entries, 1u);
}

// The next turn's prompt leaves out something of the answer.
TEST_P(SchedulerReuseTest, APromptThatDivergesGoesOnFromAHint) {
  GenerationRequest turn = request(text(100), 40);
  turn.resume_hints = {30, 97};
  start(turn);
  run();
  const auto second = start(request(text_and(97, 20, 3), 10));
  run();
  EXPECT_LE(read(*second), 20);
  EXPECT_EQ(second->wait().stats.shared_tokens, 97);
  EXPECT_EQ(second->ids(), cold(request(text_and(97, 20, 3), 10)));
  const auto third = start(request(text_and(35, 40, 5), 10));
  run();
  EXPECT_LE(read(*third), 45);
  EXPECT_EQ(third->ids(), cold(request(text_and(35, 40, 5), 10)));
}

// User reports, row 13: neither of two agents drives the other out.
TEST_P(SchedulerReuseTest, AgentsThatAlternateBothStayWarm) {
  std::vector<std::vector<TokenId>> prompts = {
      text_and(200, 20, 1), text_and(200, 20, 2)};
  for (int turn = 0; turn < 4; ++turn) {
    for (auto& prompt : prompts) {
      GenerationRequest made = request(prompt, 5);
      made.resume_hints = {200, static_cast<int>(prompt.size()) - 1};
      const auto sink = start(made);
      run();
      if (turn > 0 || &prompt != prompts.data()) {
        EXPECT_LE(read(*sink), 32) << turn;
      }
      EXPECT_EQ(sink->ids(), cold(request(prompt, 5)));
      for (const TokenId id : sink->ids()) {
        prompt.push_back(id);
      }
      for (const TokenId id : text(20, turn + 7)) {
        prompt.push_back(id);
      }
    }
  }
}

// Single flight: the shared part of prompts that come at once is read once.
TEST_P(SchedulerReuseTest, PromptsThatShareABeginningReadItOnce) {
  reset({.max_rows = 8, .prefill_chunk = 64});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  int all = 0;
  for (int i = 0; i < 5; ++i) {
    sinks.push_back(start(request(text_and(300, 20, i + 1), 6)));
  }
  run();
  for (int i = 0; i < 5; ++i) {
    all += read(*sinks[static_cast<size_t>(i)]);
    EXPECT_EQ(
        sinks[static_cast<size_t>(i)]->ids(),
        cold(request(text_and(300, 20, i + 1), 6)));
  }
  EXPECT_EQ(all, 300 + 5 * 20);
  EXPECT_EQ(sinks[1]->wait().stats.cached_from, CachedFrom::kRow);
}

// The answers of a request with n > 1.
TEST_P(SchedulerReuseTest, AnswersToOnePromptReadItOnce) {
  reset({.max_rows = 4, .prefill_chunk = 64});
  GenerationRequest made = request(text(150), 12);
  made.sampling.temperature = 1;
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    sinks.push_back(std::make_shared<RecordingSink>());
    scheduler_->add({++last_id_, made, seed, sinks.back()});
  }
  run();
  int all = 0;
  for (const auto& sink : sinks) {
    all += read(*sink);
  }
  EXPECT_EQ(all, 150 + 5);
  EXPECT_NE(sinks[0]->ids(), sinks[1]->ids());
}

TEST_P(SchedulerReuseTest, CancelledReaderLeavesWhatItReadToThoseWhoWait) {
  reset({.max_rows = 4, .prefill_chunk = 32});
  const auto reader = start(request(text_and(300, 20, 1), 6));
  const auto waiting = start(request(text_and(300, 20, 2), 6));
  for (int i = 0; i < 4; ++i) {
    scheduler_->step();
  }
  EXPECT_TRUE(waiting->prefills().empty());
  scheduler_->cancel(last_id_ - 1);
  EXPECT_EQ(reader->wait().reason, FinishReason::kCancelled);
  run();
  EXPECT_EQ(waiting->ids(), cold(request(text_and(300, 20, 2), 6)));
  EXPECT_EQ(read(*waiting), 320 - 4 * 32);
}

TEST_P(SchedulerReuseTest, OneThatWaitsForAnothersPromptCanBeCancelled) {
  reset({.max_rows = 4, .prefill_chunk = 32});
  const auto reader = start(request(text(300), 6));
  const auto waiting = start(request(text_and(290, 20, 2), 6));
  scheduler_->step();
  scheduler_->cancel(last_id_);
  EXPECT_EQ(waiting->ends(), 1);
  EXPECT_EQ(waiting->wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(waiting->wait().stats.prompt_tokens, 310);
  run();
  EXPECT_EQ(reader->ids(), cold(request(text(300), 6)));
  EXPECT_EQ(reader->ends(), 1);
}

// A retry continues a long prompt that was cancelled.
TEST_P(SchedulerReuseTest, CancelledPromptIsKept) {
  reset({.max_rows = 4, .prefill_chunk = 64});
  start(request(text(300), 6));
  for (int i = 0; i < 3; ++i) {
    scheduler_->step();
  }
  scheduler_->cancel(last_id_);
  const auto retry = start(request(text(300), 6));
  run();
  EXPECT_EQ(read(*retry), 300 - 3 * 64);
  EXPECT_EQ(retry->ids(), cold(request(text(300), 6)));
}

TEST_P(SchedulerReuseTest, ARequestByItselfNeitherTakesNorLeavesAnything) {
  start(request(text(100), 5));
  run();
  GenerationRequest alone = request(text(100), 5);
  alone.use_cache = false;
  const PromptCacheStats before = cache_.stats();
  for (int i = 0; i < 2; ++i) {
    const auto sink = start(alone);
    run();
    EXPECT_EQ(read(*sink), 100);
  }
  EXPECT_EQ(cache_.stats().bytes, before.bytes);
  EXPECT_EQ(cache_.stats().misses, before.misses);

  reset({});
  const auto hidden = start(alone);
  const auto beside = start(request(text(100), 5));
  run();
  EXPECT_EQ(read(*hidden), 100);
  EXPECT_EQ(read(*beside), 100) << "nor from a row that runs";
}

// Acceptance 77.
TEST_P(SchedulerReuseTest, throwing_row_contained) {
  int tokens = 0;
  GenerationRequest made = request(text(30, 1), 20);
  made.resume_hints = {29};
  const auto throwing =
      start(made, std::make_shared<RecordingSink>([&](TokenId) {
              if (++tokens == 4) {
                throw std::bad_alloc();
              }
            }));
  const auto beside = start(request(text(40, 2), 20));
  run();
  EXPECT_EQ(throwing->ends(), 1);
  EXPECT_EQ(throwing->wait().status.code(), StatusCode::kOverloaded);
  EXPECT_EQ(beside->ids(), cold(request(text(40, 2), 20)));
  // What it had read by then is kept.
  const auto retry = start(made);
  run();
  EXPECT_EQ(read(*retry), 1);
  EXPECT_EQ(retry->ids(), cold(request(text(30, 1), 20)));
}

// Acceptance 78 and 80: prompts are read first in, first out, a piece a step,
// while the rows before them decode.
TEST_P(SchedulerReuseTest, burst_is_fair) {
  reset({.max_rows = 8, .prefill_chunk = 16});
  std::vector<int> first_tokens; // by whom, in order
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 6; ++i) {
    auto seen = std::make_shared<bool>(false);
    sinks.push_back(start(
        request(text(40, i + 1), 60),
        std::make_shared<RecordingSink>([&first_tokens, seen, i](TokenId) {
          if (!std::exchange(*seen, true)) {
            first_tokens.push_back(i);
          }
        })));
  }
  size_t decoded = 0;
  while (first_tokens.size() < sinks.size()) {
    scheduler_->step();
    const size_t now = sinks[0]->ids().size();
    EXPECT_TRUE(first_tokens.empty() || now > decoded)
        << "the first row gets a token in each step";
    decoded = now;
  }
  EXPECT_TRUE(std::is_sorted(first_tokens.begin(), first_tokens.end()));
  run();
}

// Acceptance 78.
TEST_P(SchedulerReuseTest, no_request_starves) {
  reset({.max_rows = 3, .prefill_chunk = 16});
  GenerationRequest endless = request(text(5, 1), 10);
  endless.use_cache = false;
  std::vector<std::shared_ptr<RecordingSink>> little;
  const auto feed = [&] {
    std::erase_if(little, [](const auto& sink) { return sink->ends() > 0; });
    while (little.size() < 6) {
      little.push_back(start(endless));
    }
  };
  feed();
  const auto longer = start(request(text(400, 2), 3));
  int steps = 0;
  while (longer->ends() == 0) {
    feed();
    scheduler_->step();
    ASSERT_LT(++steps, 400) << "a long prompt among short ones";
  }
  const auto prompt = start(request(text(1000, 3), 1));
  const auto brief = start(request(text(5, 4), 30));
  steps = 0;
  while (brief->ends() == 0) {
    scheduler_->step();
    ASSERT_LT(++steps, 400) << "a short one behind a long prompt";
  }
  scheduler_->cancel_all();
  EXPECT_EQ(prompt->ends(), 1);
}

// Rows, as long as they may become, and the cache keep within the budget.
TEST_P(SchedulerReuseTest, RowsAreAdmittedWhileTheirStatesFit) {
  const int64_t length = 120;
  const uint64_t one = model_->make_kv().bytes_for(length, 512);
  reset({.max_rows = 8, .kv_budget = 2 * one + one / 2});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 5; ++i) {
    sinks.push_back(start(request(text(100, i + 1), 20)));
  }
  while (scheduler_->is_busy()) {
    scheduler_->step();
    int running = 0;
    for (const auto& sink : sinks) {
      running += !sink->prefills().empty() && sink->ends() == 0 ? 1 : 0;
    }
    ASSERT_LE(running, 2);
    ASSERT_LE(
        cache_.stats().bytes + static_cast<size_t>(running) * one,
        2 * one + one / 2);
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(
        sinks[static_cast<size_t>(i)]->ids(),
        cold(request(text(100, i + 1), 20)));
  }
  // One runs in any case: it was looked at before it was queued.
  reset({.max_rows = 8, .kv_budget = 1});
  EXPECT_FALSE(start(request(text(50), 3))->ends());
  run();
}

// Clients that ask for no length get what memory holds: they run beside each
// other, and what was read stays.
TEST_P(SchedulerReuseTest, AnswersWithAnOpenEndCountAsLongAsTheyAre) {
  const int64_t context = 3000;
  const auto bytes = [&](int64_t positions) {
    const KvState kv = model_->make_kv();
    return kv.bytes_for(positions, 512) +
        ResumableKv::kMaxCheckpoints * kv.checkpoint_bytes_for(positions, 512);
  };
  reset({.max_rows = 8, .kv_budget = bytes(context)});
  const auto open_ended = [&](int salt) {
    GenerationRequest made =
        request(text(100, salt), static_cast<int>(context) - 100);
    made.is_open_ended = true;
    return made;
  };
  const auto first = start(open_ended(1));
  const auto second = start(open_ended(2));
  for (int i = 0; i < 4; ++i) {
    scheduler_->step();
  }
  const bool fit_together = 2 * bytes(1124) <= bytes(context);
  EXPECT_EQ(!second->ids().empty(), fit_together);
  while (scheduler_->is_busy()) {
    scheduler_->step();
  }
  const size_t one = first->ids().size();
  const size_t other = second->ids().size();
  EXPECT_EQ(std::max(one, other), static_cast<size_t>(context) - 100);
  if (fit_together) {
    EXPECT_LT(std::min(one, other), static_cast<size_t>(context) - 100);
    EXPECT_GE(std::min(one, other), 1024u);
  }
  EXPECT_EQ(first->wait().reason, FinishReason::kLength);
  EXPECT_EQ(second->wait().reason, FinishReason::kLength);
  EXPECT_LE(cache_.stats().bytes, bytes(context));
}

} // namespace
} // namespace ingle
