// What gpt-oss promises beside what all models do (model_test.cpp has the
// goldens).
#include <functional>
#include <tuple>

#include <gtest/gtest.h>
#include <mlx/memory.h>
#include <nlohmann/json.hpp>

#include "model/load_model.h"
#include "model/memory_plan.h"
#include "model/testing/golden_models.h"

namespace ingle {
namespace {

Json golden_case(const std::string& name) {
  return golden_case_in("tiny_gpt_oss.json", name);
}

using Param = std::tuple<RunOptions, const char*>;

class GptOssTest : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    const auto& [run, name] = GetParam();
    auto loaded = load_golden(run, golden_case(name));
    ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
    model = std::move(loaded).value();
  }

  std::unique_ptr<const Model> model;
};

std::string name_of(const testing::TestParamInfo<Param>& each) {
  const auto& [run, name] = each.param;
  return std::string(name) + "_" + (run.isa.empty() ? "fast" : run.isa);
}

INSTANTIATE_TEST_SUITE_P(
    Runs,
    GptOssTest,
    testing::Combine(
        testing::ValuesIn(kernel_runs()),
        testing::Values("gpt_oss_4bit", "gpt_oss_mxfp4_everywhere")),
    name_of);

// Far past the window.
TEST_P(GptOssTest, AnyCutOfAPromptGivesTheSameBits) {
  expect_any_cut_gives_the_same_bits(*model, 600, {1, 7, 50, 300});
}

TEST_P(GptOssTest, RowsOfAnyLengthTogetherEqualThemselvesAlone) {
  expect_rows_equal_themselves_alone(
      *model,
      {some_tokens(1, 2),
       some_tokens(33, 3),
       some_tokens(1, 7),
       some_tokens(7)});
}

std::vector<int> windows_of(const Json& golden) {
  const auto model = load_golden({.numerics = Numerics::kNear}, golden);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  std::vector<int> windows;
  for (const LayerConfig& layer : (*model)->config().layers) {
    windows.push_back(layer.window);
  }
  return windows;
}

TEST(GptOss, EveryOtherLayerHasAWindowWhereTheFileNamesNone) {
  Json json = golden_case("gpt_oss_4bit");
  EXPECT_EQ(windows_of(json), std::vector<int>({24, 0, 24, 0}));
  json["config"].erase("layer_types");
  EXPECT_EQ(windows_of(json), std::vector<int>({24, 0, 24, 0}));
  json["config"]["layer_types"] = std::vector<std::string>{
      "full_attention",
      "full_attention",
      "sliding_attention",
      "full_attention"};
  EXPECT_EQ(windows_of(json), std::vector<int>({0, 0, 24, 0}));
}

void expect_refused(
    const Json& golden,
    StatusCode code,
    const std::string& named) {
  for (const Numerics numerics : {Numerics::kNear, Numerics::kExact}) {
    const Status status = load_golden({.numerics = numerics}, golden).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(named), std::string::npos)
        << status.message() << ", not " << named;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(GptOss, VariantsThatItDoesNotHaveAreRefusedByName) {
  const std::pair<const char*, Json> variants[] = {
      {"hidden_act", "gelu_new"},
      {"swiglu_limit", 8.0},
      {"attention_bias", false}};
  for (const auto& [field, value] : variants) {
    Json json = golden_case("gpt_oss_4bit");
    json["config"][field] = value;
    expect_refused(json, StatusCode::kUnsupported, field);
  }
}

TEST(GptOss, FieldsThatMakeNoSenseAreNamed) {
  const std::pair<const char*, Json> bad[] = {
      {"num_local_experts", 0},
      {"num_local_experts", nullptr},
      {"num_local_experts", 1 << 20},
      {"num_experts_per_tok", 9}, // of 8
      {"num_experts_per_tok", nullptr},
      {"swiglu_limit", "7"},
      {"attention_bias", 1},
      {"sliding_window", 0},
      {"sliding_window", nullptr},
      {"layer_types", "sliding_attention"},
      {"rope_theta", -1},
      {"intermediate_size", nullptr}};
  for (const auto& [field, value] : bad) {
    Json json = golden_case("gpt_oss_4bit");
    json["config"][field] = value;
    expect_refused(json, StatusCode::kCorruption, field);
  }
}

// Changes the first tensor whose name ends so.
Json with_tensor(
    Json golden,
    const std::string& name,
    const std::function<void(Json& tensors, size_t i)>& change) {
  Json& tensors = golden["tensors"];
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i][0].get<std::string>().ends_with(name)) {
      change(tensors, i);
      return golden;
    }
  }
  ADD_FAILURE() << name;
  return golden;
}

void leave_out(Json& tensors, size_t i) {
  tensors.erase(i);
}

// One more of what comes first: experts, heads, or rows.
void grow(Json& tensors, size_t i) {
  tensors[i][1][0] = tensors[i][1][0].get<int>() + 1;
}

TEST(GptOss, TensorsThatDoNotFitAreNamed) {
  const Json golden = golden_case("gpt_oss_4bit");
  for (const char* name :
       {"self_attn.sinks",
        "self_attn.k_proj.bias",
        "self_attn.o_proj.bias",
        "mlp.router.weight",
        "mlp.router.bias",
        "experts.gate_proj.weight",
        "experts.down_proj.weight",
        "experts.gate_proj.bias",
        "experts.up_proj.bias",
        "experts.down_proj.bias"}) {
    for (const auto& change : {leave_out, grow}) {
      expect_refused(
          with_tensor(golden, name, change), StatusCode::kCorruption, name);
    }
  }
}

// What is not U8.
void make_words(Json& tensors, size_t i) {
  tensors[i][2] = "words";
}

TEST(GptOss, TensorsOfMxfp4ThatDoNotFitAreNamed) {
  const std::pair<const char*, std::vector<const char*>> models[] = {
      {"gpt_oss_mxfp4",
       {"experts.gate_proj.scales",
        "experts.down_proj.scales",
        "experts.up_proj.bias"}},
      {"gpt_oss_mxfp4_everywhere", {"self_attn.q_proj.scales"}},
      {"gpt_oss_as_published",
       {"experts.gate_up_proj_blocks",
        "experts.gate_up_proj_scales",
        "experts.gate_up_proj_bias",
        "experts.down_proj_blocks",
        "experts.down_proj_scales",
        "experts.down_proj_bias"}}};
  for (const auto& [model, names] : models) {
    const Json golden = golden_case(model);
    for (const char* name : names) {
      const bool is_bias = std::string(name).ends_with("bias");
      const bool may_be_dense = std::string(name).ends_with(".scales");
      for (const auto& change : {leave_out, grow, make_words}) {
        if (change == make_words && is_bias) {
          continue;
        }
        // Without scales it would be a dense matrix, which it is not; without
        // the first blocks there is nothing that was published.
        std::string expected = name;
        if (change == leave_out && may_be_dense) {
          expected.replace(expected.size() - 6, 6, "weight");
        } else if (
            change == leave_out && expected.ends_with("up_proj_blocks")) {
          expected = "experts.gate_proj.";
        }
        expect_refused(
            with_tensor(golden, name, change),
            StatusCode::kCorruption,
            expected);
      }
    }
  }
}

// Some publish it so; gates and what they multiply take turns there.
TEST(GptOss, ExpertsPublishedUnquantisedAreRefusedInOneLine) {
  Json json = golden_case("gpt_oss");
  json["tensors"].push_back(
      {"model.layers.0.mlp.experts.gate_up_proj", {8, 64, 192}, 0});
  expect_refused(json, StatusCode::kCorruption, "MXFP4");
}

TEST(GptOss, BlocksWhoseColumnsAreNoWholeGroupsAreRefused) {
  Json json = golden_case("gpt_oss_as_published");
  json["config"]["intermediate_size"] = 80;
  expect_refused(json, StatusCode::kCorruption, "_blocks");
}

TEST(GptOss, PlannedWeightsAreWhatTheLoadedModelHolds) {
  for (const char* name :
       {"gpt_oss_4bit",
        "gpt_oss_mxfp4",
        "gpt_oss_mxfp4_everywhere",
        "gpt_oss_as_published"}) {
    const auto fs = write_golden_model(golden_case(name));
    for (const Numerics numerics : {Numerics::kNear, Numerics::kExact}) {
      const RunOptions run{.numerics = numerics};
      const auto plan = MemoryPlan::of(*fs, "/tiny", run, 256);
      ASSERT_TRUE(plan.is_ok()) << plan.status().message();
      mx::clear_cache(); // buffers that are given again may be larger
      const size_t before = mx::get_active_memory();
      const auto model = load_model(*fs, "/tiny", run);
      ASSERT_TRUE(model.is_ok()) << model.status().message();
      const auto held = static_cast<double>((*model)->weight_bytes() - before);
      EXPECT_NEAR(static_cast<double>(plan->at(1).weights) / held, 1, 0.05)
          << name;
    }
  }
}

// What reads headers alone makes nothing of weights.
TEST(GptOss, PlanUnpacksNoExperts) {
  for (const char* name : {"gpt_oss_mxfp4", "gpt_oss_as_published"}) {
    const auto fs = write_golden_model(golden_case(name));
    mx::clear_cache();
    const size_t before = mx::get_active_memory();
    mx::reset_peak_memory();
    const auto plan =
        MemoryPlan::of(*fs, "/tiny", {.numerics = Numerics::kExact}, 256);
    ASSERT_TRUE(plan.is_ok()) << plan.status().message();
    EXPECT_LT(mx::get_peak_memory() - before, plan->at(1).weights / 100);
  }
}

TEST(GptOss, NativeTypesComputeWhatExactOnesDo) {
  const auto prompt = some_tokens(40);
  // The first is f16 but for its experts, the other f32.
  for (const auto& [name, tolerance] :
       {std::pair{"gpt_oss_mxfp4", 0.1f}, {"gpt_oss_as_published", 1e-3f}}) {
    std::vector<std::vector<float>> logits;
    for (const Numerics numerics : {Numerics::kNative, Numerics::kExact}) {
      const auto model = load_golden({.numerics = numerics}, golden_case(name));
      ASSERT_TRUE(model.is_ok()) << model.status().message();
      KvState kv = (*model)->make_kv();
      logits.push_back(step(**model, kv, prompt));
    }
    for (size_t i = 0; i < logits[0].size(); ++i) {
      EXPECT_NEAR(logits[0][i], logits[1][i], tolerance) << name;
    }
  }
}

TEST(GptOss, ConfigsThatLieAboutAShapeAreCaughtBeforeAllocation) {
  const std::pair<const char*, int> lies[] = {
      {"num_local_experts", 7},
      {"num_local_experts", 1 << 12},
      {"intermediate_size", 1 << 20},
      {"intermediate_size", 64},
      {"num_attention_heads", 8},
      {"head_dim", 64},
      {"hidden_size", 1 << 20}};
  for (const auto& [field, value] : lies) {
    Json json = golden_case("gpt_oss_4bit");
    json["config"][field] = value;
    expect_refused(json, StatusCode::kCorruption, "/tiny");
  }
}

} // namespace
} // namespace ingle
