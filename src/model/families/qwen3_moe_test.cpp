// What a model with mixtures of experts promises beside what all models do
// (model_test.cpp has the goldens).
#include <functional>

#include <gtest/gtest.h>
#include <mlx/memory.h>
#include <nlohmann/json.hpp>

#include "model/load_model.h"
#include "model/memory_plan.h"
#include "model/testing/golden_models.h"

namespace ingle {
namespace {

Json golden_case(const std::string& name) {
  return golden_case_in("tiny_moe.json", name);
}

// On the kernels, where it is the same bits.
struct KernelRun {
  std::string name;
  std::string model;
  RunOptions options;
};

class MixtureTest : public testing::TestWithParam<KernelRun> {
 protected:
  void SetUp() override {
    auto loaded =
        load_golden(GetParam().options, golden_case(GetParam().model));
    ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
    model = std::move(loaded).value();
  }

  std::unique_ptr<const Model> model;
};

std::vector<KernelRun> runs_of_each_family() {
  std::vector<KernelRun> runs;
  for (const std::string model : {"qwen3_moe", "qwen3_next", "qwen3_5_moe"}) {
    for (const RunOptions& options : kernel_runs()) {
      const std::string how = options.isa.empty() ? "fast" : options.isa;
      runs.push_back({model + "_" + how, model + "_4bit", options});
    }
  }
  return runs;
}

INSTANTIATE_TEST_SUITE_P(
    Runs,
    MixtureTest,
    testing::ValuesIn(runs_of_each_family()),
    [](const auto& each) { return each.param.name; });

TEST_P(MixtureTest, AnyCutOfAPromptGivesTheSameBits) {
  expect_any_cut_gives_the_same_bits(*model, 120, {1, 7, 16, 50});
}

TEST_P(MixtureTest, RowsOfAnyLengthTogetherEqualThemselvesAlone) {
  expect_rows_equal_themselves_alone(
      *model,
      {some_tokens(1, 2),
       some_tokens(33, 3),
       some_tokens(1, 7),
       some_tokens(7)});
}

TEST(Qwen3Moe, LayersHaveExpertsByStepButForThoseListed) {
  const auto model = load_golden(
      {.numerics = Numerics::kNear}, golden_case("qwen3_moe_mixed"));
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  std::vector<bool> has_experts;
  for (const LayerConfig& layer : (*model)->config().layers) {
    has_experts.push_back(layer.has_experts);
  }
  EXPECT_EQ(has_experts, std::vector<bool>({false, true, false, false, false}));
}

TEST(Qwen3Moe, PlannedWeightsAreWhatTheLoadedModelHolds) {
  for (const char* name : {"qwen3_moe_as_published", "qwen3_moe_4bit"}) {
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
      EXPECT_NEAR(static_cast<double>(plan->at(1).weights) / held, 1, 0.05);
    }
  }
}

TEST(Qwen3Moe, PlannedWorkGrowsWithTheExpertsOfAToken) {
  Json golden = golden_case("qwen3_moe_4bit");
  const auto work = [&](int per_token) {
    golden["config"]["num_experts_per_tok"] = per_token;
    const auto plan = MemoryPlan::of(
        *write_golden_model(golden),
        "/tiny",
        {.numerics = Numerics::kNear},
        256);
    return plan->at(1).work;
  };
  // A gate, what it multiplies, and a result: 2 * 96 + 64 floats.
  EXPECT_EQ(work(8) - work(2), sizeof(float) * 6 * 256 * (2 * 96 + 64));
}

// As quantising a folder that was published leaves them.
Json quantised_by_themselves() {
  Json json = golden_case("qwen3_moe_as_published");
  json["config"]["quantization"] =
      golden_case("qwen3_moe_4bit")["config"]["quantization"];
  return json;
}

TEST(Qwen3Moe, ExpertsByThemselvesMayBeQuantised) {
  const std::vector<TokenId> prompt = {7};
  std::vector<std::vector<float>> logits;
  for (const Numerics numerics : {Numerics::kExact, Numerics::kNear}) {
    const auto model =
        load_golden({.numerics = numerics}, quantised_by_themselves());
    ASSERT_TRUE(model.is_ok()) << model.status().message();
    KvState kv = (*model)->make_kv();
    logits.push_back(step(**model, kv, prompt));
  }
  for (size_t i = 0; i < logits[0].size(); ++i) {
    EXPECT_NEAR(logits[1][i], logits[0][i], 0.12f) << i;
  }
}

void expect_refused(
    const Json& golden,
    StatusCode code,
    const std::string& named) {
  const Status status =
      load_golden({.numerics = Numerics::kNear}, golden).status();
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(named), std::string::npos)
      << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST(Qwen3Moe, VariantsThatItDoesNotHaveAreRefusedByName) {
  const std::pair<const char*, Json> variants[] = {
      {"hidden_act", "gelu_new"},
      {"attention_bias", true},
      {"layer_types",
       {"sliding_attention", "full_attention", "full_attention"}}};
  for (const auto& [field, value] : variants) {
    Json json = golden_case("qwen3_moe_4bit");
    json["config"][field] = value;
    expect_refused(json, StatusCode::kUnsupported, field);
  }
}

TEST(Qwen3Moe, FieldsThatMakeNoSenseAreNamed) {
  const std::pair<const char*, Json> bad[] = {
      {"num_experts", 0},
      {"num_experts", nullptr},
      {"num_experts", 1 << 20},
      {"num_experts_per_tok", 9}, // of 8
      {"num_experts_per_tok", -1},
      {"moe_intermediate_size", "96"},
      {"norm_topk_prob", 1},
      {"decoder_sparse_step", 0},
      {"mlp_only_layers", {3}}, // of 3
      {"mlp_only_layers", {-1}},
      {"mlp_only_layers", "all"}};
  for (const auto& [field, value] : bad) {
    Json json = golden_case("qwen3_moe_4bit");
    json["config"][field] = value;
    expect_refused(json, StatusCode::kCorruption, field);
  }
}

// Changes the first tensor whose name ends so.
Json with_tensor(
    const std::string& model,
    const std::string& name,
    const std::function<void(Json& tensors, size_t i)>& change) {
  Json json = golden_case(model);
  Json& tensors = json["tensors"];
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i][0].get<std::string>().ends_with(name)) {
      change(tensors, i);
      break;
    }
  }
  return json;
}

TEST(Qwen3Moe, TensorsThatDoNotFitAreNamed) {
  const auto grow = [](Json& tensors, size_t i) {
    tensors[i][1][0] = tensors[i][1][0].get<int>() + 1;
  };
  const auto leave_out = [](Json& tensors, size_t i) { tensors.erase(i); };
  for (const char* name :
       {"switch_mlp.gate_proj.weight",
        "switch_mlp.down_proj.weight",
        "mlp.gate.weight"}) {
    for (const auto& change :
         {std::function<void(Json&, size_t)>(grow), {leave_out}}) {
      expect_refused(
          with_tensor("qwen3_moe_4bit", name, change),
          StatusCode::kCorruption,
          name);
    }
  }
  const char* const expert = "experts.7.up_proj.weight";
  expect_refused(
      with_tensor("qwen3_moe_as_published", expert, leave_out),
      StatusCode::kCorruption,
      expert);
  const std::string module = "model.layers.0.mlp.experts.3.gate_proj";
  Json mixed = quantised_by_themselves();
  mixed["config"]["quantization"][module] = {{"bits", 8}, {"group_size", 32}};
  expect_refused(mixed, StatusCode::kCorruption, module);
  mixed["config"]["quantization"][module] = false;
  expect_refused(mixed, StatusCode::kCorruption, module);
  // One more than the config has.
  Json json = golden_case("qwen3_moe_as_published");
  json["config"]["num_experts"] = 7;
  expect_refused(json, StatusCode::kCorruption, "mlp.gate.weight");
}

TEST(Qwen3Next, FieldsThatMakeNoSenseAreNamed) {
  const std::pair<const char*, Json> bad[] = {
      {"shared_expert_intermediate_size", 0},
      {"shared_expert_intermediate_size", nullptr},
      {"num_experts", nullptr},
      {"linear_num_key_heads", 3}};
  for (const auto& [field, value] : bad) {
    Json json = golden_case("qwen3_next_4bit");
    json["config"][field] = value;
    expect_refused(json, StatusCode::kCorruption, field);
  }
  // Layers without experts need its size.
  Json json = golden_case("qwen3_next_mixed");
  json["config"].erase("intermediate_size");
  expect_refused(json, StatusCode::kCorruption, "intermediate_size");
}

TEST(Qwen3Next, TensorsOfAnotherShapeAreNamed) {
  const std::pair<const char*, const char*> tensors[] = {
      {"qwen3_next_as_published", "in_proj_qkvz.weight"},
      {"qwen3_next_4bit", "in_proj_ba.weight"},
      {"qwen3_next_4bit", "shared_expert_gate.weight"},
      {"qwen3_next_4bit", "shared_expert.down_proj.weight"},
      {"qwen3_5_moe_as_published", "experts.gate_up_proj"},
      {"qwen3_5_moe_as_published", "experts.down_proj"}};
  for (const auto& [model, name] : tensors) {
    expect_refused(
        with_tensor(
            model,
            name,
            [](Json& all, size_t i) {
              all[i][1][0] = all[i][1][0].get<int>() + 1;
            }),
        StatusCode::kCorruption,
        name);
  }
}

} // namespace
} // namespace ingle
