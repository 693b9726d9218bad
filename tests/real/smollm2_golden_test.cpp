// The default model against mlx-lm in f32, teacher-forced: every golden token
// is fed, so that one near tie can't spoil what follows.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "default_model.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

constexpr float kLogitTolerance = 1e-3f;
constexpr size_t kChunk = 512; // tokens, as the engine's

const Model* default_model() {
  static const std::unique_ptr<const Model> model =
      load_default_model({.numerics = Numerics::kExact});
  return model.get();
}

std::vector<Json> golden_cases() {
  const auto text = make_posix_file_system()->read(
      std::string(INGLE_TEST_DATA) + "/smollm2_greedy.json");
  const Json golden = Json::parse(*text);
  return {golden["cases"].begin(), golden["cases"].end()};
}

class Smollm2GoldenTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (default_model() == nullptr) {
      GTEST_SKIP() << kNoDefaultModel;
    }
  }

  // In chunks, as the engine reads a prompt; the logits after the last token.
  std::vector<float> read(KvState& kv, std::span<const TokenId> tokens) {
    std::optional<mx::array> logits;
    while (!tokens.empty()) {
      const auto chunk = tokens.first(std::min(kChunk, tokens.size()));
      tokens = tokens.subspan(chunk.size());
      const Row row{chunk, &kv, tokens.empty() ? Logits::kLast : Logits::kNone};
      auto stepped = run_step(*default_model(), {&row, 1});
      EXPECT_TRUE(stepped.is_ok()) << stepped.status().message();
      logits = std::move(stepped).value();
    }
    const float* data = logits->data<float>();
    return {data, data + logits->size()};
  }
};

double log_sum_exp(const std::vector<float>& logits) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit - peak));
  }
  return peak + std::log(sum);
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    Smollm2GoldenTest,
    testing::Range(size_t{0}, golden_cases().size()));

TEST_P(Smollm2GoldenTest, TokensAndLogitsEqualTheOracle) {
  const Json golden = golden_cases()[GetParam()];
  SCOPED_TRACE(golden["name"]);
  KvState kv = default_model()->make_kv();
  std::vector<TokenId> tokens = golden["prompt_ids"];
  for (size_t i = 0; i < golden["ids"].size(); ++i) {
    const std::vector<float> logits = read(kv, tokens);
    const auto best = std::max_element(logits.begin(), logits.end());
    tokens = {golden["ids"][i].get<TokenId>()};
    ASSERT_EQ(best - logits.begin(), tokens[0]) << "step " << i;
    ASSERT_NEAR(
        log_sum_exp(logits),
        golden["logsumexp"][i].get<double>(),
        static_cast<double>(kLogitTolerance))
        << "step " << i;
    for (const Json& entry : golden["top"][i]) {
      ASSERT_NEAR(
          logits[entry[0].get<size_t>()],
          entry[1].get<float>(),
          kLogitTolerance)
          << "step " << i;
    }
  }
}

} // namespace
} // namespace ingle
