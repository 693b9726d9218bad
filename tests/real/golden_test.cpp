// Real models against mlx-lm in f32, teacher-forced: every golden token is fed,
// so that one near tie can't spoil what follows.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "real_model.h"
#include "text/tokenizer.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

constexpr float kLogitTolerance = 1e-3f;
constexpr size_t kChunk = 512; // tokens, as the engine's

std::vector<Json> golden_cases(const char* file) {
  const auto text =
      make_posix_file_system()->read(std::string(INGLE_TEST_DATA) + "/" + file);
  const Json golden = Json::parse(*text);
  return {golden["cases"].begin(), golden["cases"].end()};
}

double log_sum_exp(const std::vector<float>& logits) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit - peak));
  }
  return peak + std::log(sum);
}

// In chunks, as the engine reads a prompt; the logits after the last token.
std::vector<float>
read(const Model& model, KvState& kv, std::span<const TokenId> tokens) {
  std::optional<mx::array> logits;
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min(kChunk, tokens.size()));
    tokens = tokens.subspan(chunk.size());
    const Row row{chunk, &kv, tokens.empty() ? Logits::kLast : Logits::kNone};
    auto stepped = run_step(model, {&row, 1});
    EXPECT_TRUE(stepped.is_ok()) << stepped.status().message();
    logits = std::move(stepped).value();
  }
  const float* data = logits->data<float>();
  return {data, data + logits->size()};
}

// Feeds the golden tokens, and gives `check` the logits that the i-th is to be
// chosen from.
template <typename Check>
void force(const Model& model, const Json& golden, const Check& check) {
  SCOPED_TRACE(golden["name"]);
  KvState kv = model.make_kv();
  std::vector<TokenId> tokens = golden["prompt_ids"];
  for (size_t i = 0; i < golden["ids"].size(); ++i) {
    const std::vector<float> logits = read(model, kv, tokens);
    const auto best = std::max_element(logits.begin(), logits.end());
    tokens = {golden["ids"][i].get<TokenId>()};
    ASSERT_EQ(best - logits.begin(), tokens[0]) << "step " << i;
    check(i, logits);
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

void expect_golden_tokens_and_logits(const Model& model, const Json& golden) {
  force(model, golden, [&](size_t i, const std::vector<float>& logits) {
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
  });
}

constexpr const char* kSmollm2Golden = "smollm2_greedy.json";

const Model* smollm2() {
  static const std::unique_ptr<const Model> model =
      load(kSmollm2, {.numerics = Numerics::kExact});
  return model.get();
}

class Smollm2GoldenTest : public testing::TestWithParam<size_t> {};

INSTANTIATE_TEST_SUITE_P(
    Cases,
    Smollm2GoldenTest,
    testing::Range(size_t{0}, golden_cases(kSmollm2Golden).size()));

// Acceptance 208.
TEST_P(Smollm2GoldenTest, logits_parity) {
  if (smollm2() == nullptr) {
    GTEST_SKIP() << kSmollm2.absent;
  }
  expect_golden_tokens_and_logits(
      *smollm2(), golden_cases(kSmollm2Golden)[GetParam()]);
}

constexpr const char* kGemma3Golden = "gemma3_greedy.json";

// One at a time: exact it takes a gigabyte.
const Model* gemma3(Numerics numerics) {
  static std::unique_ptr<const Model> model;
  static std::optional<Numerics> loaded;
  if (loaded != numerics) {
    model.reset();
    model = load(kGemma3, {.numerics = numerics});
    loaded = numerics;
  }
  return model.get();
}

class Gemma3GoldenTest : public testing::TestWithParam<Numerics> {
 protected:
  void SetUp() override {
    if (gemma3(GetParam()) == nullptr) {
      GTEST_SKIP() << kGemma3.absent;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Exact,
    Gemma3GoldenTest,
    testing::Values(Numerics::kExact));
INSTANTIATE_TEST_SUITE_P(
    Near,
    Gemma3GoldenTest,
    testing::Values(Numerics::kNear));

// Exact, the logits too; near, the tokens. One prompt is longer than the
// window, one answer grows past it.
// Acceptance 208.
TEST_P(Gemma3GoldenTest, logits_parity) {
  for (const Json& golden : golden_cases(kGemma3Golden)) {
    if (GetParam() == Numerics::kExact) {
      expect_golden_tokens_and_logits(*gemma3(GetParam()), golden);
    } else {
      force(*gemma3(GetParam()), golden, [](size_t, const auto&) {});
    }
  }
}

TEST(Gemma3TokenizerTest, PromptsHaveTheOraclesIds) {
  const auto fs = make_posix_file_system();
  const auto tokenizer =
      Tokenizer::load(*fs, join_path(folder_of(kGemma3), "tokenizer.json"));
  if (!tokenizer.is_ok()) {
    GTEST_SKIP() << kGemma3.absent;
  }
  for (const Json& golden : golden_cases(kGemma3Golden)) {
    const auto ids =
        (*tokenizer)->encode(golden["text"].get<std::string>(), true);
    EXPECT_EQ(*ids, golden["prompt_ids"].get<std::vector<TokenId>>())
        << golden["name"];
    const auto answer =
        (*tokenizer)->decode(golden["ids"].get<std::vector<TokenId>>(), true);
    EXPECT_EQ(*answer, golden["answer"]) << golden["name"];
  }
}

} // namespace
} // namespace ingle
