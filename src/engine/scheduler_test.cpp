#include "engine/scheduler.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>
#include <mlx/ops.h>

#include "engine/testing/scheduler_fixture.h"

namespace ingle {
namespace {

// One corpus under several configurations: a chunk larger than any prompt,
// one that cuts prompts unevenly, one token at a time; one row and several;
// with MLX's ops and with the kernels.
struct Config {
  int max_rows;
  int prefill_chunk;
  Numerics numerics = Numerics::kExact;
};

class SchedulerTest : public SchedulerFixture<testing::TestWithParam<Config>> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(load_tiny_llama(GetParam().numerics));
    served_->name = "tiny";
    reset({GetParam().max_rows, GetParam().prefill_chunk});
  }

  void reset(SchedulerOptions options) {
    serve(*model_, options);
  }

  static std::vector<TokenId> prompt(int n, int salt = 0) {
    std::vector<TokenId> ids;
    for (int i = 0; i < n; ++i) {
      ids.push_back((i * 53 + salt * 17 + 3) % 256);
    }
    return ids;
  }

  static GenerationRequest request(std::vector<TokenId> ids, int max_tokens) {
    GenerationRequest made;
    made.prompt = std::move(ids);
    made.max_tokens = max_tokens;
    return made;
  }

  // What generations have left behind, the most recent first.
  std::vector<std::vector<TokenId>> kept() {
    std::vector<std::vector<TokenId>> tokens;
    std::vector<PromptCache::EntryId> ids;
    for (const ReuseSource& source :
         cache_.sources(scheduler_->space_of({}), ids)) {
      EXPECT_EQ(source.held, std::ssize(source.tokens));
      tokens.emplace_back(source.tokens.begin(), source.tokens.end());
    }
    return tokens;
  }

  // Cold, and nothing of it stays.
  std::vector<TokenId> greedy(std::vector<TokenId> ids, int n) {
    cache_.clear();
    const auto sink = start(request(std::move(ids), n));
    run();
    cache_.clear();
    return sink->ids();
  }
};

INSTANTIATE_TEST_SUITE_P(
    Configs,
    SchedulerTest,
    testing::Values(
        Config{1, 512},
        Config{1, 7},
        Config{1, 1},
        Config{4, 16},
        Config{1, 7, Numerics::kNear},
        Config{4, 16, Numerics::kNear}),
    [](const auto& made) {
      return "rows" + std::to_string(made.param.max_rows) + "_chunk" +
          std::to_string(made.param.prefill_chunk) +
          (uses_kernels(made.param.numerics) ? "_kernels" : "");
    });

// Acceptance 2.
TEST_P(SchedulerTest, warm_cache_continuation_identical) {
  const auto ids = prompt(60);
  const auto cold = greedy(ids, 12);

  auto first = ids;
  first.resize(35);
  start(request(first, 1));
  run();
  ASSERT_EQ(kept().size(), 1u);
  ASSERT_EQ(kept()[0], first);
  const auto warm = start(request(ids, 12));
  run();
  EXPECT_EQ(warm->ids(), cold);
  EXPECT_EQ(warm->wait().stats.cached_tokens, 35);
  EXPECT_EQ(warm->wait().stats.prompt_tokens, 60);
}

TEST_P(SchedulerTest, EvaluationAndSamplingArePartsOfTheStepsTime) {
  const auto begin = clock_.now();
  const auto sink = start(request(prompt(20), 4));
  run();
  const auto whole = clock_.now() - begin;
  EXPECT_GT(scheduler_->evaluation_time().count(), 0);
  EXPECT_GT(scheduler_->sampling_time().count(), 0);
  EXPECT_LE(scheduler_->evaluation_time() + scheduler_->sampling_time(), whole);
}

// Acceptance 3. Of a prompt that was read whole, or further, at least a token
// is read again.
TEST_P(SchedulerTest, warm_cache_ge_prompt_leaves_a_token) {
  const auto expected = greedy(prompt(19), 4);
  start(request(prompt(20), 1));
  run();
  const auto shorter = start(request(prompt(19), 4));
  run();
  EXPECT_EQ(shorter->wait().stats.cached_tokens, 18);
  EXPECT_EQ(shorter->ids(), expected);
  const auto same = start(request(prompt(20), 4));
  run();
  EXPECT_EQ(same->wait().stats.cached_tokens, 19);
}

// Acceptance 4.
TEST_P(SchedulerTest, cache_tokens_exact_length) {
  const auto ids = prompt(30);
  const auto sink = start(request(ids, 9));
  run();
  EXPECT_EQ(sink->wait().reason, FinishReason::kLength);
  EXPECT_EQ(sink->wait().stats.generated_tokens, 9);
  ASSERT_EQ(kept().size(), 1u);
  auto expected = ids;
  const auto generated = sink->ids();
  ASSERT_EQ(generated.size(), 9u);
  expected.insert(expected.end(), generated.begin(), generated.end() - 1);
  EXPECT_EQ(kept()[0], expected);
}

// Acceptance 5.
TEST_P(SchedulerTest, cache_tokens_exact_eos) {
  const auto ids = prompt(30);
  const auto free_run = greedy(ids, 9);
  served_->eos = {free_run[5]};
  const auto first = std::find(free_run.begin(), free_run.end(), free_run[5]);
  const auto yielded = static_cast<size_t>(first - free_run.begin());

  const auto sink = start(request(ids, 9));
  run();
  EXPECT_EQ(sink->ids(), std::vector<TokenId>(free_run.begin(), first));
  EXPECT_EQ(sink->wait().reason, FinishReason::kStop);
  EXPECT_EQ(sink->wait().stats.generated_tokens, static_cast<int>(yielded) + 1);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].size(), ids.size() + yielded);

  GenerationRequest ignoring = request(ids, 9);
  ignoring.ignore_eos = true;
  const auto all = start(std::move(ignoring));
  run();
  EXPECT_EQ(all->ids(), free_run);
}

TEST_P(SchedulerTest, EosAsTheLastAllowedTokenIsAStop) {
  const auto ids = prompt(12);
  const auto free_run = greedy(ids, 1);
  served_->eos = {free_run[0]};
  const auto sink = start(request(ids, 1));
  run();
  EXPECT_EQ(sink->wait().reason, FinishReason::kStop);
  EXPECT_TRUE(sink->ids().empty());
}

// Acceptance 6: the consumer stops after five tokens.
TEST_P(SchedulerTest, early_break_stats) {
  const auto ids = prompt(25);
  const auto uncut = greedy(ids, 20);
  const auto sink = start(request(ids, 20));
  while (sink->ids().size() < 5) {
    scheduler_->step();
  }
  scheduler_->cancel(last_id_);
  EXPECT_FALSE(scheduler_->is_busy());
  EXPECT_EQ(sink->ends(), 1);
  EXPECT_EQ(sink->wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(sink->wait().stats.generated_tokens, 5);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].size(), ids.size() + 4);

  auto longer = kept()[0];
  longer.push_back(uncut[4]);
  const auto rest = start(request(longer, 15));
  run();
  EXPECT_EQ(rest->wait().stats.cached_from, CachedFrom::kEntry);
  EXPECT_EQ(rest->ids(), std::vector<TokenId>(uncut.begin() + 5, uncut.end()));
}

TEST_P(SchedulerTest, CancelInTheMiddleOfAPromptKeepsWhatWasRead) {
  const auto ids = prompt(100);
  const auto expected = greedy(ids, 5);
  const auto sink = start(request(ids, 5));
  scheduler_->step();
  const bool was_prefilling = sink->ids().empty();
  scheduler_->cancel(last_id_);
  EXPECT_EQ(sink->wait().reason, FinishReason::kCancelled);
  ASSERT_EQ(kept().size(), 1u);
  const int read = std::min(99, static_cast<int>(kept()[0].size()));
  EXPECT_GT(read, 0);
  const auto resumed = start(request(ids, 5));
  run();
  EXPECT_EQ(resumed->ids(), expected);
  EXPECT_EQ(resumed->wait().stats.cached_tokens, read);
  EXPECT_EQ(was_prefilling, read < 99);
}

TEST_P(SchedulerTest, QueuedGenerationsRunInOrderAndEqualThemselvesAlone) {
  std::vector<std::vector<TokenId>> expected;
  for (int i = 0; i < 6; ++i) {
    expected.push_back(greedy(prompt(10 + 9 * i, i), 6));
  }
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 6; ++i) {
    sinks.push_back(start(request(prompt(10 + 9 * i, i), 6)));
  }
  run();
  for (size_t i = 0; i < sinks.size(); ++i) {
    EXPECT_EQ(sinks[i]->ids(), expected[i]);
    EXPECT_EQ(sinks[i]->ends(), 1);
  }
  EXPECT_EQ(kept().size(), 6u);
}

TEST_P(SchedulerTest, CancelOfAQueuedOneLeavesTheOthersAlone) {
  const auto expected = greedy(prompt(40), 8);
  const auto running = start(request(prompt(40), 8));
  for (int i = 0; i < 4; ++i) {
    start(request(prompt(30, i), 8)); // fill the rows
  }
  const auto queued = start(request(prompt(20), 8));
  scheduler_->step();
  scheduler_->cancel(last_id_);
  scheduler_->cancel(12345);
  EXPECT_EQ(queued->ends(), 1);
  EXPECT_EQ(queued->wait().reason, FinishReason::kCancelled);
  run();
  EXPECT_EQ(running->ids(), expected);
}

TEST_P(SchedulerTest, CancelAllGivesEverySinkItsEnd) {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 5; ++i) {
    sinks.push_back(start(request(prompt(20, i), 50)));
  }
  scheduler_->step();
  scheduler_->step();
  scheduler_->cancel_all();
  EXPECT_FALSE(scheduler_->is_busy());
  for (const auto& sink : sinks) {
    EXPECT_EQ(sink->ends(), 1);
  }
}

// Forwards as the model it wraps, but for one step.
class FailingModel final : public Model {
 public:
  enum class Failure { kThrow, kNotANumber };

  FailingModel(const Model& inner, int fail_at, Failure failure)
      : inner_(inner), fail_at_(fail_at), failure_(failure) {}

  const ModelConfig& config() const override {
    return inner_.config();
  }
  KvState make_kv() const override {
    return inner_.make_kv();
  }
  std::optional<mx::array> forward(std::span<const Row> rows) const override {
    auto logits = inner_.forward(rows);
    if (++steps_ != fail_at_) {
      return logits;
    }
    if (failure_ == Failure::kThrow || !logits) {
      throw std::runtime_error("the device is on fire");
    }
    return mx::multiply(
        *logits, mx::array(std::numeric_limits<float>::quiet_NaN()));
  }

 private:
  const Model& inner_;
  const int fail_at_;
  const Failure failure_;
  mutable int steps_ = 0;
};

TEST_P(SchedulerTest, FailedStepEndsItsRowsWithAnErrorAndServingGoesOn) {
  const auto expected = greedy(prompt(9), 6);
  for (int fail_at = 1; fail_at <= 4; ++fail_at) {
    const FailingModel failing(*model_, fail_at, FailingModel::Failure::kThrow);
    serve(failing, {GetParam().max_rows, GetParam().prefill_chunk});
    const auto sink = start(request(prompt(9), 6));
    run();
    EXPECT_EQ(sink->ends(), 1);
    EXPECT_EQ(sink->wait().status.code(), StatusCode::kInternal);
    EXPECT_NE(sink->wait().status.message().find("on fire"), std::string::npos);
    // The kernels' states go back to where they were; MLX's arrays are gone.
    const bool is_kept = uses_kernels(GetParam().numerics) && fail_at > 1;
    EXPECT_EQ(kept().size(), is_kept ? 1u : 0u);

    const auto next = start(request(prompt(9), 6));
    run();
    EXPECT_TRUE(next->wait().status.is_ok());
    EXPECT_EQ(next->ids(), expected);
  }
}

TEST_P(SchedulerTest, LogitsThatAreNotNumbersFailTheirRowAlone) {
  const FailingModel failing(*model_, 10, FailingModel::Failure::kNotANumber);
  serve(failing, {1, 512});
  const auto sink = start(request(prompt(9), 30));
  const auto next = start(request(prompt(9), 3));
  run();
  EXPECT_EQ(sink->wait().status.code(), StatusCode::kInternal);
  EXPECT_EQ(sink->ids().size(), 9u);
  EXPECT_TRUE(next->wait().status.is_ok());
  EXPECT_EQ(next->ids().size(), 3u);
}

TEST_P(SchedulerTest, SameSeedSameAnswerWhateverRunsBeside) {
  GenerationRequest sampled = request(prompt(15), 20);
  sampled.sampling.temperature = 1;
  const auto alone = start(sampled);
  run();
  const auto beside = start(sampled);
  start(request(prompt(33, 4), 10));
  run();
  EXPECT_EQ(beside->ids(), alone->ids());
}

// Rows differ in every knob: each is sampled as if it were alone.
TEST_P(SchedulerTest, AnySamplingBesideAnyOther) {
  std::vector<GenerationRequest> requests(5, request(prompt(12, 2), 12));
  requests[1].sampling.temperature = 1;
  requests[1].sampling.top_p = 0.9f;
  requests[2].sampling.temperature = 0.7f;
  requests[2].sampling.xtc_probability = 0.5f;
  requests[2].sampling.xtc_threshold = 0.01f;
  requests[3].sampling.repetition_penalty = 1.5f;
  requests[3].top_logprobs = 2;
  requests[3].prompt_logprobs = true;
  requests[4].sampling.temperature = 2;
  requests[4].sampling.min_p = 0.1f;
  requests[4].sampling.top_k = 30;
  requests[4].sampling.frequency_penalty = 0.5f;
  std::vector<std::vector<TokenId>> alone;
  for (const auto& made : requests) {
    const auto sink = start(made);
    run();
    alone.push_back(sink->ids());
  }
  std::vector<std::shared_ptr<RecordingSink>> together;
  for (const auto& made : requests) {
    together.push_back(start(made));
  }
  run();
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_EQ(together[i]->ids(), alone[i]) << "request " << i;
  }
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_NE(alone[0], alone[3]);
}

// Acceptance 17. A penalty that no logit stands up to: what the history holds
// never comes, whether it was read or came from a cache.
TEST_P(SchedulerTest, history_includes_prompt) {
  const auto ids = prompt(60);
  GenerationRequest penalised = request(ids, 20);
  penalised.sampling.presence_penalty = 100;
  penalised.sampling.presence_context = 0;
  const auto cold = start(penalised);
  run();
  auto seen = ids;
  for (const TokenId token : cold->ids()) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), token), 0);
    seen.push_back(token);
  }
  cache_.clear();

  auto first = ids;
  first.resize(45);
  start(request(first, 1));
  run();
  const auto warm = start(penalised);
  run();
  EXPECT_EQ(warm->wait().stats.cached_tokens, 45);
  EXPECT_EQ(warm->ids(), cold->ids());
}

// Acceptance 20. With top_k 1 the tokens are the greedy ones at any
// temperature, so that log-probabilities can be compared.
TEST_P(SchedulerTest, logprobs_pre_truncation) {
  GenerationRequest greedy = request(prompt(20), 10);
  greedy.top_logprobs = 4;
  GenerationRequest truncated = greedy;
  truncated.sampling.temperature = 3;
  truncated.sampling.top_p = 0.5f;
  truncated.sampling.top_k = 1;
  GenerationRequest penalised = greedy;
  penalised.sampling.presence_penalty = 0.25f;
  penalised.sampling.presence_context = 0;
  const auto plain = start(greedy);
  const auto sampled = start(truncated);
  const auto changed = start(penalised);
  run();
  ASSERT_EQ(sampled->ids(), plain->ids());
  for (size_t i = 0; i < plain->tokens().size(); ++i) {
    const GeneratedToken token = sampled->tokens()[i];
    EXPECT_NEAR(token.logprob, plain->tokens()[i].logprob, 1e-4f);
    ASSERT_EQ(token.top.size(), 4u);
    EXPECT_EQ(token.top[0].id, token.id);
    EXPECT_EQ(token.top[0].logprob, token.logprob);
    for (size_t k = 0; k < token.top.size(); ++k) {
      EXPECT_LE(token.top[k].logprob, 0);
      EXPECT_LE(token.top[k].logprob, token.top[k == 0 ? 0 : k - 1].logprob);
    }
  }
  EXPECT_GT(
      std::abs(changed->tokens()[0].logprob - plain->tokens()[0].logprob),
      1e-4f);
}

TEST_P(SchedulerTest, MinTokensHoldOffTheEnd) {
  const auto ids = prompt(12);
  const auto free_run = greedy(ids, 12);
  served_->eos = {free_run[0]};
  GenerationRequest made = request(ids, 12);
  made.min_tokens = 5;
  made.top_logprobs = 288;
  const auto sink = start(made);
  run();
  const auto tokens = sink->tokens();
  ASSERT_GE(tokens.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NE(tokens[i].id, free_run[0]);
    EXPECT_EQ(tokens[i].top.back().id, free_run[0]);
    EXPECT_EQ(tokens[i].top.back().logprob, -9999);
  }

  made.ignore_eos = true; // nothing to hold off
  const auto ignoring = start(made);
  run();
  EXPECT_EQ(ignoring->ids(), free_run);
}

TEST_P(SchedulerTest, MaxTokensZeroReadsThePromptAndEnds) {
  const auto ids = prompt(30);
  const auto sink = start(request(ids, 0));
  run();
  const GenerationEnd end = sink->wait();
  EXPECT_TRUE(end.status.is_ok());
  EXPECT_EQ(end.reason, FinishReason::kLength);
  EXPECT_EQ(end.stats.generated_tokens, 0);
  EXPECT_EQ(end.stats.decode_ms, 0);
  EXPECT_TRUE(sink->ids().empty());
  EXPECT_EQ(sink->prefills().back().processed, 30);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0], ids);

  // What was read can be continued.
  auto longer = ids;
  longer.push_back(7);
  const auto warm = start(request(longer, 6));
  run();
  EXPECT_EQ(warm->ids(), greedy(longer, 6));
}

TEST_P(SchedulerTest, EachPieceOfThePromptIsReportedBeforeTheFirstToken) {
  const auto ids = prompt(50);
  start(request(prompt(20), 1));
  run();
  std::shared_ptr<RecordingSink> sink;
  sink = std::make_shared<RecordingSink>([&](TokenId) {
    ASSERT_FALSE(sink->prefills().empty());
    EXPECT_EQ(sink->prefills().back().processed, 50);
  });
  scheduler_->add({99, request(ids, 3), 1, sink});
  run();
  const auto steps = sink->prefills();
  const int chunk = GetParam().prefill_chunk;
  ASSERT_EQ(std::ssize(steps), (30 + chunk - 1) / chunk);
  double elapsed = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].total, 50);
    EXPECT_EQ(steps[i].cached, 20);
    EXPECT_EQ(
        steps[i].processed, std::min(50, 20 + chunk * static_cast<int>(i + 1)));
    EXPECT_GE(steps[i].elapsed_ms, elapsed);
    EXPECT_TRUE(steps[i].tokens.empty());
    elapsed = steps[i].elapsed_ms;
  }
}

// Longer than what is scored in one step.
TEST_P(SchedulerTest, PromptLogprobsEqualThoseOfTheSameTokensGenerated) {
  GenerationRequest generating = request(prompt(5), 145);
  generating.top_logprobs = 3;
  const auto generated = start(generating);
  run();
  auto all = prompt(5);
  for (const TokenId token : generated->ids()) {
    all.push_back(token);
  }
  GenerationRequest scoring = request(all, 2);
  scoring.top_logprobs = 3;
  scoring.prompt_logprobs = true;
  scoring.sampling.presence_penalty = 50; // is not for the prompt
  const auto scored = start(scoring);
  run();

  std::vector<GeneratedToken> tokens;
  for (const PrefillStep& step : scored->prefills()) {
    EXPECT_LE(step.tokens.size(), 64u);
    tokens.insert(tokens.end(), step.tokens.begin(), step.tokens.end());
    EXPECT_EQ(std::ssize(tokens), step.processed - 1);
  }
  ASSERT_EQ(tokens.size(), 149u);
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].id, all[i + 1]);
    if (i < 4) {
      continue;
    }
    const GeneratedToken expected = generated->tokens()[i - 4];
    EXPECT_NEAR(tokens[i].logprob, expected.logprob, 1e-3f);
    ASSERT_EQ(tokens[i].top.size(), 3u);
    EXPECT_EQ(tokens[i].top[0].id, expected.id);
  }
  EXPECT_EQ(scored->ids().size(), 2u);

  scoring.max_tokens = 0;
  const auto only_scored = start(scoring);
  run();
  EXPECT_EQ(only_scored->wait().reason, FinishReason::kLength);
  EXPECT_EQ(
      only_scored->prefills().back().tokens.back().logprob,
      tokens.back().logprob);
}

TEST_P(SchedulerTest, PromptLogprobsAreOfTheWholePromptWhateverIsCached) {
  start(request(prompt(20), 1));
  run();
  GenerationRequest scoring = request(prompt(30), 1);
  scoring.top_logprobs = 0;
  scoring.prompt_logprobs = true;
  const auto sink = start(scoring);
  run();
  size_t scored = 0;
  for (const PrefillStep& step : sink->prefills()) {
    EXPECT_EQ(step.cached, 0);
    scored += step.tokens.size();
  }
  EXPECT_EQ(scored, 29u);
}

TEST_P(SchedulerTest, PromptLogitsThatAreNotNumbersFailTheirRow) {
  const FailingModel failing(*model_, 1, FailingModel::Failure::kNotANumber);
  serve(failing, {1, GetParam().prefill_chunk});
  GenerationRequest scoring = request(prompt(9), 1);
  scoring.top_logprobs = 1;
  scoring.prompt_logprobs = true;
  const auto sink = start(scoring);
  const auto next = start(scoring);
  run();
  EXPECT_EQ(sink->wait().status.code(), StatusCode::kInternal);
  EXPECT_TRUE(sink->prefills().empty());
  EXPECT_TRUE(next->wait().status.is_ok());
}

} // namespace
} // namespace ingle
