// Models against mlx-lm's answers on tiny random ones of each family.
#include "model/model.h"

#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>

#include <gtest/gtest.h>
#include <mlx/memory.h>
#include <mlx/ops.h>
#include <nlohmann/json.hpp>

#include "cache/array_kv_cache.h"
#include "cache/block_kv_cache.h"
#include "kernels/isa.h"
#include "model/load_model.h"
#include "model/testing/golden_models.h"
#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

// Of logits: f32 sums in another order than the oracle's; or activations, keys
// and values of 15 bits. These random models make much of little: f32's own
// rounding, 6e-8, comes out as 1e-4.
struct Tolerance {
  float largest = 0;
  float mean = 0;
};

Tolerance tolerance_of(Numerics numerics) {
  return numerics == Numerics::kExact ? Tolerance{1e-3f, 1e-4f}
                                      : Tolerance{0.12f, 6e-3f};
}

// With keys and values of few bits, a sum in another order moves an element
// here and there to the next of its levels.
constexpr Tolerance kFlippedElement{0.8f, 0.2f};

const std::vector<Json>& llama_cases() {
  static const auto* cases =
      new std::vector<Json>(golden_cases("tiny_llama.json"));
  return *cases;
}

const std::vector<Json>& family_cases() {
  static const auto* cases = [] {
    auto* all = new std::vector<Json>(golden_cases("tiny_families.json"));
    for (const char* file :
         {"tiny_gemma4.json",
          "tiny_gpt_oss.json",
          "tiny_hybrid.json",
          "tiny_moe.json"}) {
      for (Json& each : golden_cases(file)) {
        all->push_back(std::move(each));
      }
    }
    return all;
  }();
  return *cases;
}

// The tiny models whose keys and values are quantised.
const std::vector<Json>& kv_cases() {
  static const auto* cases =
      new std::vector<Json>(golden_cases("tiny_kv.json"));
  return *cases;
}

const Json& family_case(const std::string& name) {
  return *std::find_if(
      family_cases().begin(), family_cases().end(), [&](const Json& each) {
        return each["name"] == name;
      });
}

std::unique_ptr<const Model> load_tiny(
    const RunOptions& run,
    const TinyLlamaOptions& options = {}) {
  const auto fs = make_memory_file_system();
  EXPECT_TRUE(write_tiny_llama(*fs, "/tiny", options).is_ok());
  auto model = load_model(*fs, "/tiny", run);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return std::move(model).value();
}

std::unique_ptr<const Model> load_family(
    const RunOptions& run,
    const Json& golden,
    const Json& kv_config = Json::array()) {
  const auto fs = write_golden_model(golden);
  EXPECT_TRUE(
      write_file(*fs, "/tiny/kv_config.json", as_bytes(kv_config.dump()))
          .is_ok());
  auto model = load_model(*fs, "/tiny", run);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return std::move(model).value();
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

TokenId argmax(const std::vector<float>& logits) {
  return static_cast<TokenId>(
      std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Each way to compute: MLX's ops, and the kernels of each instruction set.
std::vector<RunOptions> all_runs() {
  std::vector<RunOptions> runs = near_runs();
  runs.insert(runs.begin(), {.numerics = Numerics::kExact, .threads = 2});
  return runs;
}

std::string name_of(const testing::TestParamInfo<RunOptions>& each) {
  return each.param.numerics == Numerics::kFast ? "fast"
      : each.param.isa.empty()                  ? "mlx"
                                                : each.param.isa;
}

// Of batches and cuts: fast, too.
std::vector<RunOptions> all_runs_and_fast() {
  auto runs = all_runs();
  runs.push_back({.numerics = Numerics::kFast, .threads = 2});
  return runs;
}

class ModelTest : public testing::TestWithParam<RunOptions> {
 protected:
  // Of the same tokens, differently cut or beside others.
  static void expect_same(
      const std::vector<float>& logits,
      const std::vector<float>& expected) {
    if (uses_kernels(GetParam().numerics)) {
      EXPECT_EQ(logits, expected);
    } else {
      EXPECT_LT(
          distance(logits, expected),
          tolerance_of(GetParam().numerics).largest);
    }
  }

  // Quantised: only then is it the same bits.
  const std::unique_ptr<const Model> model =
      load_tiny(GetParam(), {.quantised = true});
};

INSTANTIATE_TEST_SUITE_P(
    Runs,
    ModelTest,
    testing::ValuesIn(all_runs_and_fast()),
    name_of);

// The case's number: the case itself would be printed in full.
class GoldenTest
    : public testing::TestWithParam<std::tuple<RunOptions, size_t>> {};

INSTANTIATE_TEST_SUITE_P(
    TinyLlama,
    GoldenTest,
    testing::Combine(
        testing::ValuesIn(all_runs()),
        testing::Range(size_t{0}, llama_cases().size())));

// Teacher-forced: what the oracle answered is fed back.
void expect_answer(
    const Model& model,
    const Json& answer,
    const Tolerance& tolerance) {
  KvState kv = model.make_kv();
  std::vector<TokenId> tokens = answer["prompt_ids"];
  float total = 0;
  size_t compared = 0;
  for (size_t i = 0; i < answer["ids"].size(); ++i) {
    const std::vector<float> logits = step(model, kv, tokens);
    for (const Json& entry : answer["top"][i]) {
      const float error =
          std::abs(logits[entry[0].get<size_t>()] - entry[1].get<float>());
      EXPECT_LT(error, tolerance.largest);
      total += error;
      ++compared;
    }
    EXPECT_NEAR(
        std::accumulate(logits.begin(), logits.end(), 0.0f),
        answer["sum"][i].get<float>(),
        10 * tolerance.largest);
    EXPECT_EQ(argmax(logits), answer["ids"][i].get<TokenId>());
    tokens = {answer["ids"][i].get<TokenId>()};
  }
  EXPECT_LT(total / static_cast<float>(compared), tolerance.mean);
}

TEST_P(GoldenTest, TokensAndLogitsEqualTheOracle) {
  const auto& [run, number] = GetParam();
  const Json& golden = llama_cases()[number];
  SCOPED_TRACE(golden["name"]);
  const auto model = load_tiny(
      run, {.tied = golden["tied"], .quantised = golden["quantised"]});
  expect_answer(*model, golden, tolerance_of(run.numerics));
}

using FamilyParam = std::tuple<RunOptions, size_t>;

std::string family_name_of(const testing::TestParamInfo<FamilyParam>& each) {
  const auto& [run, number] = each.param;
  return family_cases()[number]["name"].get<std::string>() + "_" +
      (run.isa.empty() ? "mlx" : run.isa);
}

class FamilyTest : public testing::TestWithParam<FamilyParam> {};

INSTANTIATE_TEST_SUITE_P(
    Families,
    FamilyTest,
    testing::Combine(
        testing::ValuesIn(all_runs()),
        testing::Range(size_t{0}, family_cases().size())),
    family_name_of);

// Acceptance 204.
TEST_P(FamilyTest, universal_11_archs_vs_oracle) {
  const auto& [run, number] = GetParam();
  const Json& golden = family_cases()[number];
  const auto model = load_family(run, golden);
  for (const Json& answer : golden["answers"]) {
    expect_answer(*model, answer, tolerance_of(run.numerics));
  }
}

TEST(Family, GoldensHaveEachArchitectureDenseAndQuantised) {
  std::set<std::string> names;
  for (const Json& golden : family_cases()) {
    names.insert(golden["name"]);
  }
  for (const std::string name :
       {"gemma",
        "gemma2",
        "glm4",
        "granite",
        "llama",
        "olmo2",
        "phi3",
        "qwen2",
        "qwen3",
        "smollm3",
        "starcoder2"}) {
    EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_TRUE(names.contains(name + "_4bit")) << name;
  }
}

TEST_P(FamilyTest, AnyCutOfAPromptGivesTheSameLogits) {
  const auto& [run, number] = GetParam();
  const auto model = load_family(run, family_cases()[number]);
  const auto prompt = some_tokens(90);
  KvState at_once = model->make_kv();
  const auto expected = step(*model, at_once, prompt);
  KvState in_chunks = model->make_kv();
  prefill(*model, in_chunks, std::span(prompt).first(89), 11);
  const auto logits = step(*model, in_chunks, std::span(prompt).last(1));
  if (uses_kernels(run.numerics) &&
      family_cases()[number]["config"].contains("quantization")) {
    EXPECT_EQ(logits, expected);
  } else {
    EXPECT_LT(distance(logits, expected), tolerance_of(run.numerics).largest);
  }
}

// Of tensors whose names hold `part`, in the layers that see all positions, so
// many times the values.
Json with_values_times_two(Json golden, const std::string& part) {
  const Json& types = golden["config"]["text_config"]["layer_types"];
  for (Json& tensor : golden["tensors"]) {
    const auto name = tensor[0].get<std::string>();
    for (size_t i = 0; i < types.size(); ++i) {
      const std::string layer = ".layers." + std::to_string(i) + ".";
      if (types[i] == "full_attention" &&
          name.find(layer) != std::string::npos &&
          name.find(part) != std::string::npos) {
        tensor[2] = tensor[2].get<int>() + 1;
      }
    }
  }
  return golden;
}

std::vector<float> logits_after(
    const RunOptions& run,
    const Json& golden,
    const std::vector<TokenId>& prompt) {
  const auto model = load_family(run, golden);
  KvState kv = model->make_kv();
  return step(*model, kv, prompt);
}

// Acceptance 201, of gemma 4.
class Gemma4AttentionTest : public testing::TestWithParam<RunOptions> {};

INSTANTIATE_TEST_SUITE_P(
    Runs,
    Gemma4AttentionTest,
    testing::ValuesIn(all_runs()),
    name_of);

// One token attends to itself alone: only its value matters, and that is not
// what the norm of keys makes.
TEST_P(Gemma4AttentionTest, k_eq_v_uses_raw_k) {
  const Json& golden = family_case("gemma4_12b");
  const Json changed = with_values_times_two(golden, "k_norm");
  const std::vector<TokenId> one = {7};
  EXPECT_EQ(
      logits_after(GetParam(), changed, one),
      logits_after(GetParam(), golden, one));
  const auto more = some_tokens(9);
  EXPECT_GT(
      distance(
          logits_after(GetParam(), changed, more),
          logits_after(GetParam(), golden, more)),
      5e-3f);
}

// Keys and values of 8 and 4 bits, in all layers or in some, from the first
// token on and past the window, with MLX's ops. The kernels' elements are other
// ones (kv_layout.h), and these models make much of little: what theirs are
// worth is measured on real weights (tests/real/kernels_kl_test.cpp).
class KvTest : public testing::TestWithParam<size_t> {};

INSTANTIATE_TEST_SUITE_P(
    Kv,
    KvTest,
    testing::Range(size_t{0}, kv_cases().size()),
    [](const testing::TestParamInfo<size_t>& each) {
      return kv_cases()[each.param]["name"].get<std::string>();
    });

TEST_P(KvTest, TokensAndLogitsEqualTheOracle) {
  const Json& golden = kv_cases()[GetParam()];
  const auto model = load_family(
      {.numerics = Numerics::kExact, .threads = 2},
      golden,
      golden["kv_config"]);
  for (const Json& answer : golden["answers"]) {
    expect_answer(*model, answer, kFlippedElement);
  }
}

// Families with sliding windows, and in their caches more positions than those
// keep: what is seen is the same however the prompt is cut, and also where one
// piece is longer than the window, and where nothing was forgotten.
class LongTest : public testing::TestWithParam<RunOptions> {
 protected:
  static constexpr int kLength = 700;

  void load(const std::string& family, const Json& kv_config) {
    SCOPED_TRACE(family + " " + kv_config.dump());
    model_ = load_family(GetParam(), family_case(family), kv_config);
    prompt_ = some_tokens(kLength);
    KvState kv = model_->make_kv();
    expected_ = step(*model_, kv, prompt_);
    EXPECT_EQ(kv.layer(0).begin(), 0);
  }

  std::unique_ptr<const Model> model_;
  std::vector<TokenId> prompt_;
  std::vector<float> expected_; // after all of it at once
};

INSTANTIATE_TEST_SUITE_P(
    Runs,
    LongTest,
    testing::ValuesIn(all_runs()),
    name_of);

// A kv_config.json for the first layers.
Json uniform(int bits, int layers) {
  Json list = Json::array();
  for (int i = 0; i < layers; ++i) {
    list.push_back({{"layer_idx", i}, {"bits", bits}, {"group_size", 32}});
  }
  return list;
}

const std::pair<const char*, Json> kLongCases[] = {
    {"mistral_4bit", uniform(16, 0)},
    {"mistral_4bit", uniform(8, 3)},
    {"mistral_4bit", uniform(4, 2)},
    {"gemma3_text_4bit", uniform(4, 4)},
    {"gemma4_e4b_4bit", uniform(16, 0)},
    {"gemma4_e4b_4bit", uniform(4, 5)},
    {"gpt_oss_4bit", uniform(16, 0)},
    {"gpt_oss_4bit", uniform(4, 4)},
};

// The blocks of a layer that hold rows.
std::vector<std::byte> bytes_of(const KvState& kv, size_t layer) {
  KvState copy = kv.snapshot(kv.offset()).restore();
  auto& cache = static_cast<BlockKvCache&>(copy.layer(layer));
  const std::byte* blocks = cache.extend(0);
  const auto used = static_cast<size_t>(
      (cache.offset() + kBlockPositions - 1) / kBlockPositions -
      cache.first_block());
  const size_t all =
      static_cast<size_t>(cache.capacity() - cache.begin()) / kBlockPositions;
  return {blocks, blocks + cache.bytes() / all * used};
}

// Acceptance 49 and 56.
TEST_P(LongTest, window_prefill) {
  for (const auto& [family, kv_config] : kLongCases) {
    load(family, kv_config);
    for (const size_t chunk : {size_t{400}, size_t{100}}) {
      KvState kv = model_->make_kv();
      prefill(*model_, kv, std::span(prompt_).first(kLength - 3), chunk);
      for (size_t i = kLength - 3; i + 1 < kLength; ++i) {
        prefill(*model_, kv, std::span(prompt_).subspan(i, 1), 1);
      }
      EXPECT_GT(kv.layer(0).begin(), 0); // it has a window
      const auto logits = step(*model_, kv, std::span(prompt_).last(1));
      if (uses_kernels(GetParam().numerics)) {
        EXPECT_EQ(logits, expected_) << family << kv_config;
      } else {
        EXPECT_LT(
            distance(logits, expected_),
            kv_config.empty() ? tolerance_of(GetParam().numerics).largest
                              : kFlippedElement.largest)
            << family << kv_config;
      }
    }
  }
}

// MLX's dense products depend on their shape: with the kernels alone.
class LongKernelsTest : public LongTest {};

INSTANTIATE_TEST_SUITE_P(
    Runs,
    LongKernelsTest,
    testing::ValuesIn(near_runs()),
    name_of);

TEST_P(LongKernelsTest, kv_quant_on_write_chunk_invariant) {
  load("qwen3_4bit", uniform(4, 3));
  KvState at_once = model_->make_kv();
  prefill(*model_, at_once, prompt_, kLength);
  for (const size_t chunk : {size_t{7}, size_t{300}}) {
    KvState in_chunks = model_->make_kv();
    prefill(*model_, in_chunks, prompt_, chunk);
    for (size_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(bytes_of(in_chunks, layer), bytes_of(at_once, layer));
    }
  }
}

// Acceptance 52.
TEST_P(LongTest, window_restore_past_window) {
  for (const auto& [family, kv_config] : kLongCases) {
    load(family, kv_config);
    KvState kv = model_->make_kv();
    prefill(*model_, kv, prompt_, 100);
    KvState restored = kv.snapshot(kLength).restore();
    const auto more = some_tokens(320, 5);
    for (size_t i = 0; i < more.size(); i += 40) {
      const auto piece = std::span(more).subspan(i, 40);
      const auto expected = step(*model_, kv, piece);
      ASSERT_EQ(step(*model_, restored, piece), expected) << family;
    }
  }
}

// Acceptance 1. The head runs on one position: forward() gives one row of
// logits however long the chunk is, and none for the chunks before the last.
TEST_P(ModelTest, prefill_chunking_equal) {
  const auto prompt = some_tokens(100);
  KvState at_once = model->make_kv();
  const auto expected = step(*model, at_once, prompt);

  KvState in_chunks = model->make_kv();
  prefill(*model, in_chunks, std::span(prompt).first(80), 20);
  const auto logits = step(*model, in_chunks, std::span(prompt).last(20));
  EXPECT_EQ(argmax(logits), argmax(expected));
  expect_same(logits, expected);

  KvState kv = model->make_kv();
  const Row row{prompt, &kv, Logits::kLast};
  EXPECT_EQ(model->forward({&row, 1})->shape(), mx::Shape({1, 288}));
}

TEST_P(ModelTest, RowsOfAnyLengthTogetherEqualThemselvesAlone) {
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
  expect_same({data, data + 288}, alone[0]);
  expect_same({data + 288, data + 576}, alone[2]);
  EXPECT_EQ(together[1].offset(), 1);
}

TEST_P(ModelTest, LogitsOfAllPositionsEqualThoseOfOneAtATime) {
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
    expect_same({row, row + 288}, expected);
  }
}

// Acceptance 47, through a model.
TEST_P(ModelTest, kv_trim_then_extend) {
  const auto prompt = some_tokens(40);
  KvState never_trimmed = model->make_kv();
  const auto expected = step(*model, never_trimmed, prompt);

  KvState kv = model->make_kv();
  auto other = some_tokens(60, 9);
  std::copy(prompt.begin(), prompt.begin() + 25, other.begin());
  prefill(*model, kv, other, 60);
  ASSERT_TRUE(kv.trim(25).is_ok());
  const auto logits = step(*model, kv, std::span(prompt).subspan(25));
  expect_same(logits, expected);
}

TEST_P(ModelTest, RestoredSnapshotContinuesAsIfNeverLeft) {
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
TEST(MlxModel, FailedStepIsAnErrorAndTakesItsStatesAlong) {
  const auto model = load_tiny({.numerics = Numerics::kExact});
  KvState kv = model->make_kv();
  std::vector<std::unique_ptr<KvCache>> narrow;
  for (int i = 0; i < model->config().num_hidden_layers; ++i) {
    narrow.push_back(
        std::make_unique<ArrayKvCache>(KvLayerShape{2, 8, mx::float32}));
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

TEST(KernelModel, StateIsAsBeforeAFailedStep) {
  const auto model = load_tiny({.numerics = Numerics::kNear});
  const auto prompt = some_tokens(90);
  KvState kv = model->make_kv();
  prefill(*model, kv, std::span(prompt).first(60), 60);
  const Row row{std::span(prompt).subspan(60, 20), &kv, Logits::kLast};
  EXPECT_FALSE(run_step(FailingModel(*model), {&row, 1}).is_ok());
  EXPECT_TRUE(kv.is_intact());
  EXPECT_EQ(kv.offset(), 60);

  KvState never_failed = model->make_kv();
  EXPECT_EQ(
      step(*model, kv, std::span(prompt).subspan(60)),
      step(*model, never_failed, prompt));
}

TEST(KernelModel, OutputsAreGivenAgainOnceNobodyHasThem) {
  CpuKernels kernels(supported_isas().back(), 1, Numerics::kNear);
  std::optional<mx::array> first = kernels.output(2, 8);
  const mx::array second = kernels.output(2, 8);
  const auto id = first->id();
  EXPECT_NE(second.id(), id);
  EXPECT_NE(second.data<float>(), first->data<float>());
  first.reset();
  EXPECT_NE(kernels.output(3, 8).id(), id);
  EXPECT_EQ(kernels.output(2, 8).id(), id);
  for (int rows = 4; rows < 40; ++rows) {
    EXPECT_EQ(kernels.output(rows, 8).shape(), mx::Shape({rows, 8}));
  }
  EXPECT_EQ(second.shape(), mx::Shape({2, 8}));
}

TEST(KernelModel, StepHoldsNoMoreThanItsInputAndOutput) {
  const auto model = load_tiny({.numerics = Numerics::kNear});
  const auto prompt = some_tokens(256);
  KvState kv = model->make_kv();
  const size_t before = mx::get_active_memory();
  mx::reset_peak_memory();
  prefill(*model, kv, prompt, prompt.size());
  const size_t layer = sizeof(float) * prompt.size() *
      static_cast<size_t>(model->config().hidden_size);
  EXPECT_GE(mx::get_peak_memory() - before, 2 * layer);
  EXPECT_LT(mx::get_peak_memory() - before, 3 * layer);
}

TEST(KernelModel, AnyNumberOfThreadsGivesTheSameBits) {
  const auto prompt = some_tokens(50);
  std::vector<std::vector<float>> logits;
  for (const int threads : {1, 2, 5}) {
    const auto model = load_tiny(
        {.numerics = Numerics::kNear, .threads = threads}, {.quantised = true});
    KvState kv = model->make_kv();
    logits.push_back(step(*model, kv, prompt));
  }
  EXPECT_EQ(logits[1], logits[0]);
  EXPECT_EQ(logits[2], logits[0]);
}

} // namespace
} // namespace ingle
