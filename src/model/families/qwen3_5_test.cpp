// What a model with recurrent layers promises beside what all models do
// (model_test.cpp has the goldens): its state can't be cut, but copied.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/load_model.h"
#include "model/testing/golden_models.h"

namespace ingle {
namespace {

Json golden_case(const std::string& name) {
  return golden_case_in("tiny_hybrid.json", name);
}

// With the kernels, where it is the same bits.
class Qwen3_5Test : public testing::TestWithParam<RunOptions> {
 protected:
  const std::unique_ptr<const Model> model =
      std::move(load_golden(GetParam(), golden_case("qwen3_5_4bit"))).value();
};

std::vector<RunOptions> runs_with_few_bits() {
  std::vector<RunOptions> runs = kernel_runs();
  runs.push_back(
      {.numerics = Numerics::kNear,
       .threads = 2,
       .kv_quant = KvQuant::kUniform,
       .kv = {8, 32}});
  return runs;
}

INSTANTIATE_TEST_SUITE_P(
    Runs,
    Qwen3_5Test,
    testing::ValuesIn(runs_with_few_bits()),
    [](const auto& each) {
      return each.param.numerics == Numerics::kFast ? "fast"
          : each.param.isa.empty()                  ? "kv8"
                                                    : each.param.isa;
    });

// Acceptance 203, through a model.
TEST_P(Qwen3_5Test, gdn_chunk_invariance) {
  expect_any_cut_gives_the_same_bits(*model, 120, {1, 7, 16, 50});
}

TEST_P(Qwen3_5Test, RowsOfAnyLengthTogetherEqualThemselvesAlone) {
  expect_rows_equal_themselves_alone(
      *model, {some_tokens(1, 2), some_tokens(33, 3), some_tokens(7, 1)}, 20);
}

TEST_P(Qwen3_5Test, StateIsCutOnlyToWhereItStands) {
  KvState kv = model->make_kv();
  step(*model, kv, some_tokens(30));
  EXPECT_FALSE(kv.can_trim_to(29));
  EXPECT_EQ(kv.trim(29).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(kv.can_trim_to(30));
  EXPECT_EQ(kv.offset(), 30);
}

TEST_P(Qwen3_5Test, RestoredSnapshotContinuesAsIfNeverLeft) {
  expect_restored_snapshot_continues(*model);
}

TEST_P(Qwen3_5Test, StateIsAsBeforeAFailedStep) {
  const auto prompt = some_tokens(90);
  KvState kv = model->make_kv();
  step(*model, kv, std::span(prompt).first(60));
  const auto beside = some_tokens(20, 9);
  const Row failing{beside, &kv, Logits::kLast};
  EXPECT_FALSE(run_step(FailingModel(*model), {&failing, 1}).is_ok());
  EXPECT_TRUE(kv.is_intact());
  EXPECT_EQ(kv.offset(), 60);

  KvState never_failed = model->make_kv();
  EXPECT_EQ(
      step(*model, kv, std::span(prompt).subspan(60)),
      step(*model, never_failed, prompt));
}

Status load_failure(const Json& golden) {
  return load_golden({.numerics = Numerics::kNear}, golden).status();
}

void expect_refused(
    const Json& golden,
    StatusCode code,
    const std::string& named) {
  const Status status = load_failure(golden);
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(named), std::string::npos)
      << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

// Of logits of up to 3.6: inputs have 7 bits, and a random model makes much of
// little.
constexpr float kFastLargest = 0.6f;
constexpr float kFastMean = 0.08f;

// Teacher-forced, as model_test.cpp does with the other numerics.
TEST(Qwen3_5, FastIsNearTheOracle) {
  const Json golden = golden_case("qwen3_5_4bit");
  const auto model = load_golden({.numerics = Numerics::kFast}, golden);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  for (const Json& answer : golden["answers"]) {
    KvState kv = (*model)->make_kv();
    std::vector<TokenId> tokens = answer["prompt_ids"];
    float total = 0;
    size_t compared = 0;
    for (size_t i = 0; i < answer["ids"].size(); ++i) {
      const std::vector<float> logits = step(**model, kv, tokens);
      for (const Json& entry : answer["top"][i]) {
        const float error =
            std::abs(logits[entry[0].get<size_t>()] - entry[1].get<float>());
        EXPECT_LT(error, kFastLargest);
        total += error;
        ++compared;
      }
      tokens = {answer["ids"][i].get<TokenId>()};
    }
    EXPECT_LT(total / static_cast<float>(compared), kFastMean);
  }
}

TEST(Qwen3_5, VariantsThatItDoesNotHaveAreRefusedByName) {
  const Json golden = golden_case("qwen3_5");
  const std::pair<const char*, Json> variants[] = {
      {"attn_output_gate", false},
      {"hidden_act", "gelu_new"},
      {"layer_types", {"full_attention", "mamba", "mamba", "mamba"}}};
  for (const auto& [field, value] : variants) {
    Json json = golden;
    json["config"]["text_config"][field] = value;
    expect_refused(json, StatusCode::kUnsupported, field);
  }
}

TEST(Qwen3_5, FieldsThatMakeNoSenseAreNamed) {
  const Json golden = golden_case("qwen3_5");
  const std::pair<const char*, Json> bad[] = {
      {"linear_num_key_heads", 3}, // 4 value heads are no multiple
      {"linear_num_value_heads", nullptr},
      {"linear_key_head_dim", 1 << 20},
      {"linear_value_head_dim", "24"},
      {"linear_conv_kernel_dim", 1},
      {"linear_conv_kernel_dim", 17},
      {"num_experts", -1},
      {"rope_parameters", {{"partial_rotary_factor", 0.1}}}, // 3 of 32
      {"layer_types", {"full_attention"}}};
  for (const auto& [field, value] : bad) {
    Json json = golden;
    json["config"]["text_config"][field] = value;
    const bool is_rope = std::string_view(field) == "rope_parameters";
    expect_refused(
        json,
        StatusCode::kCorruption,
        is_rope ? "partial_rotary_factor" : field);
  }
}

TEST(Qwen3_5, TensorsOfAnotherShapeAreNamed) {
  for (const char* name : {"conv1d.weight", "A_log", "q_proj.weight"}) {
    Json json = golden_case("qwen3_5");
    for (Json& tensor : json["tensors"]) {
      const auto own = tensor[0].get<std::string>();
      if (own.ends_with(name)) {
        tensor[1][0] = tensor[1][0].get<int>() + 1;
      }
    }
    expect_refused(json, StatusCode::kCorruption, name);
  }
}

TEST(Qwen3_5, TextConfigComesBeforeTheRestOfTheFile) {
  Json json = golden_case("qwen3_5")["config"];
  Json& text = json["text_config"];
  const auto parse = [&] {
    auto config = parse_model_config(json.dump(), "m/config.json");
    EXPECT_TRUE(config.is_ok()) << config.status().message();
    return *config;
  };
  text.erase("tie_word_embeddings");
  text.erase("eos_token_id");
  json["hidden_size"] = 7;
  json["tie_word_embeddings"] = true;
  json["eos_token_id"] = {5, 6};
  EXPECT_EQ(parse().hidden_size, 64);
  EXPECT_EQ(parse().tie_word_embeddings, true);
  EXPECT_EQ(parse().eos, (std::vector<TokenId>{5, 6}));
  json["tie_word_embeddings"] = false;
  text["tie_word_embeddings"] = true;
  text["eos_token_id"] = 7;
  EXPECT_EQ(parse().tie_word_embeddings, true);
  EXPECT_EQ(parse().eos, (std::vector<TokenId>{7, 5, 6}));

  text.erase("rope_parameters");
  EXPECT_EQ(parse().ropes.front().rotary_factor, 0.25f);
  EXPECT_EQ(parse().ropes.front().theta, 1e5f);
  text["partial_rotary_factor"] = 0.5;
  EXPECT_EQ(parse().ropes.front().rotary_factor, 0.5f);
  json["text_config"] = 5;
  const Status status =
      parse_model_config(json.dump(), "m/config.json").status();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(status.message().find("text_config"), std::string::npos);
}

TEST(Qwen3_5, LayersAreRecurrentByNameOrByInterval) {
  const auto layers = [](const Json& json) {
    const auto model = load_golden({.numerics = Numerics::kNear}, json);
    EXPECT_TRUE(model.is_ok()) << model.status().message();
    std::vector<bool> recurrent;
    for (const LayerConfig& layer : (*model)->config().layers) {
      recurrent.push_back(layer.is_recurrent);
    }
    return recurrent;
  };
  Json json = golden_case("qwen3_5_text");
  const std::vector<bool> expected = {true, false, true, false};
  EXPECT_EQ(layers(json), expected);
  json["config"]["full_attention_interval"] = 4;
  json["config"]["layer_types"] = {
      "linear_attention",
      "full_attention",
      "linear_attention",
      "full_attention"};
  EXPECT_EQ(layers(json), expected);
}

} // namespace
} // namespace ingle
