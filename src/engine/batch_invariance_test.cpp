// A row's tokens are the same bits alone and in any batch, cold and warm, for
// every kind of cache.
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "engine/scheduler.h"
#include "engine/testing/recording_sink.h"
#include "model/testing/golden_models.h"

namespace ingle {
namespace {

struct Kind {
  const char* file;
  const char* model;
  int kv_bits; // 16: in full
  Numerics numerics;
};

// Caches that keep all rows, windows (prompts go past them), recurrent states,
// layers that share; in full and quantised.
const Kind kKinds[] = {
    {"tiny_families.json", "llama_4bit", 16, Numerics::kNear},
    {"tiny_families.json", "gemma_4bit", 8, Numerics::kFast},
    {"tiny_families.json", "mistral_4bit", 16, Numerics::kNear},
    {"tiny_families.json", "gemma3_text_4bit", 4, Numerics::kNear},
    {"tiny_families.json", "gemma3_text_4bit", 16, Numerics::kFast},
    {"tiny_hybrid.json", "qwen3_5_4bit", 16, Numerics::kNear},
    {"tiny_hybrid.json", "qwen3_5_4bit", 8, Numerics::kFast},
    {"tiny_gemma4.json", "gemma4_e4b_4bit", 16, Numerics::kNear},
    {"tiny_gpt_oss.json", "gpt_oss_mxfp4", 16, Numerics::kNear},
};

constexpr GenerationId kRequests = 16; // of each scheduler

class BatchInvariance : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const bool is_fast = GetParam().numerics == Numerics::kFast;
    RunOptions run{.numerics = GetParam().numerics, .threads = is_fast ? 2 : 1};
    if (GetParam().kv_bits != 16) {
      run.kv_quant = KvQuant::kUniform;
      run.kv = {GetParam().kv_bits, 32};
    }
    auto model =
        load_golden(run, golden_case_in(GetParam().file, GetParam().model));
    ASSERT_TRUE(model.is_ok()) << model.status().message();
    model_ = *std::move(model);
    served_->context_length = 4096;
    served_->vocab_size = model_->config().vocab_size;
  }

  unsigned below(unsigned n) {
    return static_cast<unsigned>(random_()) % n;
  }

  // Prompts go on from one of a few texts, each a prefix of the next ones'.
  GenerationRequest random_request() {
    GenerationRequest made;
    const int salt = static_cast<int>(below(2));
    const int shared = static_cast<int>(below(4)) * 50;
    for (int i = 0; i < shared; ++i) {
      made.prompt.push_back((i * 53 + salt * 17 + 3) % 250);
    }
    for (unsigned left = 1 + below(60); left > 0; --left) {
      made.prompt.push_back(static_cast<TokenId>(below(250)));
    }
    for (unsigned hints = below(3); hints > 0; --hints) {
      made.resume_hints.push_back(
          static_cast<int>(below(static_cast<unsigned>(made.prompt.size()))));
    }
    made.max_tokens = 1 + static_cast<int>(below(25));
    made.ignore_eos = true;
    made.use_cache = below(8) != 0;
    if (below(2) == 0) {
      made.sampling.temperature = 0.5f + 0.5f * static_cast<float>(below(3));
      made.sampling.top_p = below(2) == 0 ? 1 : 0.9f;
      made.sampling.top_k = static_cast<int>(below(2)) * 40;
      made.sampling.presence_penalty = static_cast<float>(below(2));
    }
    if (below(4) == 0) {
      made.top_logprobs = 2;
    }
    return made;
  }

  std::vector<GeneratedToken> alone(GenerationRequest made, uint64_t seed) {
    PromptCache none(0);
    Scheduler scheduler(*model_, served_, {1, 512}, clock_, none);
    const auto sink = std::make_shared<RecordingSink>();
    made.use_cache = false;
    scheduler.add({1, std::move(made), seed, sink});
    while (scheduler.is_busy()) {
      scheduler.step();
    }
    EXPECT_TRUE(sink->wait().status.is_ok());
    return sink->tokens();
  }

  struct Started {
    GenerationRequest request;
    std::shared_ptr<RecordingSink> sink;
    bool cancelled = false;
  };

  SystemClock clock_;
  std::mt19937 random_{7};
  std::unique_ptr<const Model> model_;
  std::shared_ptr<ServedModel> served_ = std::make_shared<ServedModel>();
};

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    BatchInvariance,
    testing::ValuesIn(kKinds),
    [](const auto& made) {
      return std::string(made.param.model) + "_kv" +
          std::to_string(made.param.kv_bits) +
          (made.param.numerics == Numerics::kFast ? "_fast" : "_near");
    });

// Acceptance 58, 59, 61 to 64, 75 and 76: rows join when they come and leave
// when they end or are cancelled, take over what others have read, and each
// token and log-probability is the one that the row gives alone.
TEST_P(BatchInvariance, any_row_beside_any_row) {
  int64_t cached = 0;
  for (const int rows : {2, 5}) {
    PromptCache cache(size_t{4} << 20);
    Scheduler scheduler(
        *model_, served_, {rows, rows == 2 ? 16 : 100}, clock_, cache);
    std::map<GenerationId, Started> started;
    GenerationId last = 0;
    while (last < kRequests || scheduler.is_busy()) {
      if (last < kRequests && below(3) == 0) {
        Started made{random_request(), std::make_shared<RecordingSink>()};
        scheduler.add({++last, made.request, last, made.sink});
        started.emplace(last, std::move(made));
      }
      if (last > 0 && below(40) == 0) {
        const GenerationId id = 1 + below(static_cast<unsigned>(last));
        started[id].cancelled = true;
        scheduler.cancel(id);
      }
      scheduler.step();
      ASSERT_LE(cache.stats().bytes, cache.stats().max_bytes);
    }
    for (auto& [id, made] : started) {
      const GenerationEnd end = made.sink->wait();
      ASSERT_TRUE(end.status.is_ok()) << end.status.message();
      EXPECT_EQ(made.sink->ends(), 1);
      cached += end.stats.cached_tokens;
      const auto expected = alone(made.request, id);
      const auto got = made.sink->tokens();
      ASSERT_TRUE(made.cancelled || got.size() == expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].id, expected[i].id) << id << " at " << i;
        ASSERT_EQ(got[i].logprob, expected[i].logprob) << id << " at " << i;
      }
    }
  }
  EXPECT_GT(cached, 200);
}

} // namespace
} // namespace ingle
