// The llama family against mlx-lm's answers on tiny random models.
#include "model/model.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <nlohmann/json.hpp>

#include "cache/plain_kv_cache.h"
#include "model/load_model.h"
#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

// f32 sums in another order than the oracle's.
constexpr float kLogitTolerance = 1e-3f;

std::vector<Json> golden_cases() {
  const auto text = make_posix_file_system()->read(
      std::string(INGLE_TEST_DATA) + "/tiny_llama.json");
  const Json golden = Json::parse(*text);
  return {golden["cases"].begin(), golden["cases"].end()};
}

std::unique_ptr<const Model> load_tiny(const TinyLlamaOptions& options = {}) {
  const auto fs = make_memory_file_system();
  EXPECT_TRUE(write_tiny_llama(*fs, "/tiny", options).is_ok());
  auto model = load_model(*fs, "/tiny", {Numerics::kExact});
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return std::move(model).value();
}

std::vector<float>
step(const Model& model, KvState& kv, std::span<const TokenId> tokens) {
  const Row row{tokens, &kv, Logits::kLast};
  const auto logits = run_step(model, {&row, 1});
  EXPECT_TRUE(logits.is_ok()) << logits.status().message();
  const float* data = (*logits)->data<float>();
  return {data, data + model.config().vocab_size};
}

// Forwards all but the last `keep` tokens in chunks whose logits nobody wants.
void prefill(
    const Model& model,
    KvState& kv,
    std::span<const TokenId> tokens,
    size_t chunk) {
  while (!tokens.empty()) {
    const auto piece = tokens.first(std::min(chunk, tokens.size()));
    const Row row{piece, &kv, Logits::kNone};
    const auto logits = run_step(model, {&row, 1});
    ASSERT_TRUE(logits.is_ok()) << logits.status().message();
    EXPECT_FALSE(logits->has_value());
    tokens = tokens.subspan(piece.size());
  }
}

float distance(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

TokenId argmax(const std::vector<float>& logits) {
  return static_cast<TokenId>(
      std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<TokenId> some_tokens(int n, int seed = 1) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < n; ++i) {
    tokens.push_back((i * 37 + seed * 101) % 256);
  }
  return tokens;
}

// The case's number: the case itself would be printed in full.
class GoldenTest : public testing::TestWithParam<size_t> {};

INSTANTIATE_TEST_SUITE_P(
    TinyLlama,
    GoldenTest,
    testing::Range(size_t{0}, golden_cases().size()));

TEST_P(GoldenTest, TokensAndLogitsEqualTheOracle) {
  const Json golden = golden_cases()[GetParam()];
  SCOPED_TRACE(golden["name"]);
  const auto model =
      load_tiny({.tied = golden["tied"], .quantised = golden["quantised"]});
  KvState kv = model->make_kv();
  std::vector<TokenId> tokens = golden["prompt_ids"];
  for (size_t i = 0; i < golden["ids"].size(); ++i) {
    const std::vector<float> logits = step(*model, kv, tokens);
    for (const Json& entry : golden["top"][i]) {
      EXPECT_NEAR(
          logits[entry[0].get<size_t>()],
          entry[1].get<float>(),
          kLogitTolerance);
    }
    EXPECT_NEAR(
        std::accumulate(logits.begin(), logits.end(), 0.0f),
        golden["sum"][i].get<float>(),
        1e-2f);
    EXPECT_EQ(argmax(logits), golden["ids"][i].get<TokenId>());
    tokens = {golden["ids"][i].get<TokenId>()};
  }
}

// Acceptance 1. The head runs on one position: forward() gives one row of
// logits however long the chunk is, and none for the chunks before the last.
TEST(Acceptance, prefill_chunking_equal) {
  const auto model = load_tiny();
  const auto prompt = some_tokens(100);
  KvState at_once = model->make_kv();
  const auto expected = step(*model, at_once, prompt);

  KvState in_chunks = model->make_kv();
  prefill(*model, in_chunks, std::span(prompt).first(80), 20);
  const auto logits = step(*model, in_chunks, std::span(prompt).last(20));
  EXPECT_EQ(argmax(logits), argmax(expected));
  EXPECT_LT(distance(logits, expected), kLogitTolerance);

  KvState kv = model->make_kv();
  const Row row{prompt, &kv, Logits::kLast};
  EXPECT_EQ(model->forward({&row, 1})->shape(), mx::Shape({1, 288}));
}

TEST(Model, RowsOfAnyLengthTogetherEqualThemselvesAlone) {
  const auto model = load_tiny();
  const std::vector<std::vector<TokenId>> prompts = {
      some_tokens(7, 1), some_tokens(1, 2), some_tokens(33, 3)};
  std::vector<KvState> together;
  std::vector<std::vector<float>> alone;
  for (const auto& prompt : prompts) {
    KvState kv = model->make_kv();
    alone.push_back(step(*model, kv, prompt));
    together.push_back(model->make_kv());
  }
  std::vector<Row> rows;
  for (size_t i = 0; i < prompts.size(); ++i) {
    rows.push_back(
        {prompts[i], &together[i], i == 1 ? Logits::kNone : Logits::kLast});
  }
  const auto logits = run_step(*model, rows);
  ASSERT_TRUE(logits.is_ok());
  ASSERT_EQ((*logits)->shape(), mx::Shape({2, 288})); // row 1 wants none
  const float* data = (*logits)->data<float>();
  EXPECT_LT(distance({data, data + 288}, alone[0]), kLogitTolerance);
  EXPECT_LT(distance({data + 288, data + 576}, alone[2]), kLogitTolerance);
  EXPECT_EQ(together[1].offset(), 1);
}

TEST(Model, LogitsOfAllPositionsEqualThoseOfOneAtATime) {
  const auto model = load_tiny();
  const auto prompt = some_tokens(9);
  const auto beside = some_tokens(5, 4);
  KvState scored = model->make_kv();
  KvState other = model->make_kv();
  const Row rows[] = {
      {beside, &other, Logits::kLast}, {prompt, &scored, Logits::kAll}};
  const auto logits = run_step(*model, rows);
  ASSERT_TRUE(logits.is_ok());
  ASSERT_EQ((*logits)->shape(), mx::Shape({10, 288}));

  KvState kv = model->make_kv();
  for (size_t i = 0; i < prompt.size(); ++i) {
    const float* row = (*logits)->data<float>() + (i + 1) * 288;
    const auto expected = step(*model, kv, std::span(prompt).subspan(i, 1));
    EXPECT_LT(distance({row, row + 288}, expected), kLogitTolerance);
  }
}

// Acceptance 47, through a model.
TEST(Acceptance, kv_trim_then_extend) {
  const auto model = load_tiny();
  const auto prompt = some_tokens(40);
  KvState never_trimmed = model->make_kv();
  const auto expected = step(*model, never_trimmed, prompt);

  KvState kv = model->make_kv();
  auto other = some_tokens(60, 9);
  std::copy(prompt.begin(), prompt.begin() + 25, other.begin());
  prefill(*model, kv, other, 60);
  ASSERT_TRUE(kv.trim(25).is_ok());
  const auto logits = step(*model, kv, std::span(prompt).subspan(25));
  EXPECT_LT(distance(logits, expected), kLogitTolerance);
}

TEST(Model, RestoredSnapshotContinuesAsIfNeverLeft) {
  const auto model = load_tiny();
  const auto prompt = some_tokens(30);
  KvState kv = model->make_kv();
  prefill(*model, kv, std::span(prompt).first(29), 29);
  KvState restored = kv.snapshot(29).restore();
  const auto expected = step(*model, kv, std::span(prompt).last(1));
  const auto logits = step(*model, restored, std::span(prompt).last(1));
  EXPECT_EQ(distance(logits, expected), 0);
}

// A state whose rows have another width makes MLX throw while the graph is
// built, after the first row has appended.
TEST(Model, FailedStepIsAnErrorAndAbandonsItsStates) {
  const auto model = load_tiny();
  KvState kv = model->make_kv();
  std::vector<std::unique_ptr<KvCache>> narrow;
  for (int i = 0; i < model->config().num_hidden_layers; ++i) {
    narrow.push_back(
        std::make_unique<PlainKvCache>(KvLayerShape{2, 8, mx::float32}));
  }
  KvState foreign(std::move(narrow));
  const auto prompt = some_tokens(3);
  const Row rows[] = {
      {prompt, &kv, Logits::kLast}, {prompt, &foreign, Logits::kLast}};
  const auto logits = run_step(*model, rows);
  EXPECT_EQ(logits.status().code(), StatusCode::kInternal);
  EXPECT_FALSE(kv.is_intact());
  EXPECT_FALSE(foreign.is_intact());

  KvState fresh = model->make_kv();
  EXPECT_EQ(step(*model, fresh, prompt).size(), 288u);
}

} // namespace
} // namespace ingle
