// What gemma 4 promises beside what all models do (model_test.cpp has the
// goldens).
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/load_model.h"
#include "model/make_kv_state.h"
#include "model/memory_plan.h"
#include "model/testing/golden_models.h"

namespace ingle {
namespace {

const char* const kSmall = "gemma4_e4b_4bit";
const char* const kLarge = "gemma4_12b_4bit";
const char* const kMixture = "gemma4_26b_4bit";

Json golden_case(const std::string& name) {
  return golden_case_in("tiny_gemma4.json", name);
}

// With another value of a field of the text's part.
Json with_field(const char* name, const char* field, const Json& value) {
  Json json = golden_case(name);
  json["config"]["text_config"][field] = value;
  return json;
}

struct ModelRun {
  const char* name = "";
  RunOptions run;
};

class Gemma4Test : public testing::TestWithParam<ModelRun> {
 protected:
  void SetUp() override {
    auto loaded = load_golden(GetParam().run, golden_case(GetParam().name));
    ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
    model = std::move(loaded).value();
  }

  std::unique_ptr<const Model> model;
};

std::vector<ModelRun> runs_of_each_shape() {
  std::vector<ModelRun> runs;
  for (const char* name : {kSmall, kMixture}) {
    for (const RunOptions& run : kernel_runs()) {
      runs.push_back({name, run});
    }
  }
  return runs;
}

std::string name_of(const testing::TestParamInfo<ModelRun>& each) {
  const auto& [name, run] = each.param;
  return std::string(name) + "_" + (run.isa.empty() ? "fast" : run.isa);
}

INSTANTIATE_TEST_SUITE_P(
    Runs,
    Gemma4Test,
    testing::ValuesIn(runs_of_each_shape()),
    name_of);

// Some want all their logits, one wants none: a layer's own inputs are those
// of the tokens that it computes.
TEST_P(Gemma4Test, RowsOfAnyLengthTogetherEqualThemselvesAlone) {
  const std::vector<std::vector<TokenId>> prompts = {
      some_tokens(3, 2), some_tokens(33, 3), some_tokens(1, 7)};
  std::vector<KvState> together;
  std::vector<Row> rows;
  for (size_t i = 0; i < prompts.size(); ++i) {
    together.push_back(model->make_kv());
  }
  rows.push_back({prompts[0], &together[0], Logits::kAll});
  rows.push_back({prompts[1], &together[1], Logits::kNone});
  rows.push_back({prompts[2], &together[2], Logits::kLast});
  const auto logits = run_step(*model, rows);
  ASSERT_TRUE(logits.is_ok()) << logits.status().message();
  ASSERT_EQ((*logits)->shape(), mx::Shape({4, 288}));
  const auto found = [&](size_t i) {
    const float* data = (*logits)->data<float>() + i * 288;
    return std::vector(data, data + 288);
  };
  KvState kv = model->make_kv();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found(i), step(*model, kv, std::span(prompts[0]).subspan(i, 1)));
  }
  KvState last = model->make_kv();
  EXPECT_EQ(found(3), step(*model, last, prompts[2]));
  KvState unasked = model->make_kv();
  step(*model, unasked, prompts[1]);
  EXPECT_EQ(
      step(*model, together[1], prompts[2]), step(*model, unasked, prompts[2]));
}

TEST_P(Gemma4Test, RestoredSnapshotContinuesAsIfNeverLeft) {
  expect_restored_snapshot_continues(*model);
}

TEST_P(Gemma4Test, StateIsAsBeforeAFailedStepAndMayBeCut) {
  const auto prompt = some_tokens(90);
  KvState kv = model->make_kv();
  step(*model, kv, std::span(prompt).first(60));
  const auto beside = some_tokens(20, 9);
  const Row failing{beside, &kv, Logits::kLast};
  EXPECT_FALSE(run_step(FailingModel(*model), {&failing, 1}).is_ok());
  EXPECT_TRUE(kv.is_intact());
  EXPECT_EQ(kv.offset(), 60);
  ASSERT_TRUE(kv.trim(50).is_ok());

  KvState never_failed = model->make_kv();
  EXPECT_EQ(
      step(*model, kv, std::span(prompt).subspan(50)),
      step(*model, never_failed, prompt));
}

TEST(Gemma4, LayersShareTheKeysOfTheLastOneBeforeThatIsOfTheirKind) {
  const auto model =
      load_golden({.numerics = Numerics::kNear}, golden_case(kSmall));
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const ModelConfig& config = (*model)->config();
  EXPECT_EQ(config.cache_count(), 5u);
  std::vector<std::optional<size_t>> donors;
  std::vector<int> inner;
  for (const LayerConfig& layer : config.layers) {
    donors.push_back(layer.donor);
    inner.push_back(config.intermediate_size_of(layer));
  }
  const std::optional<size_t> none;
  EXPECT_EQ(
      donors,
      (std::vector<std::optional<size_t>>{
          none, none, none, none, none, 3, 4, 3}));
  EXPECT_EQ(inner, (std::vector<int>{128, 128, 128, 128, 128, 256, 256, 256}));
  EXPECT_EQ((*model)->make_kv().snapshot(0).layers.size(), 5u);
}

TEST(Gemma4, KindsOfLayersHaveTheirHeads) {
  const auto model =
      load_golden({.numerics = Numerics::kNear}, golden_case(kLarge));
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const ModelConfig& config = (*model)->config();
  const LayerConfig& near = config.layers[0];
  const LayerConfig& full = config.layers[1];
  EXPECT_EQ(near.window, 24);
  EXPECT_EQ(full.window, 0);
  EXPECT_EQ(config.head_dim_of(near), 32);
  EXPECT_EQ(config.head_dim_of(full), 64);
  EXPECT_EQ(config.key_value_heads_of(near), 2);
  EXPECT_EQ(config.key_value_heads_of(full), 1);
  EXPECT_FALSE(near.values_are_keys);
  EXPECT_TRUE(full.values_are_keys);
  EXPECT_EQ(config.ropes[*full.rope].kind, RopeKind::kProportional);
  EXPECT_EQ(config.ropes[*near.rope].kind, RopeKind::kDefault);
}

MemoryPlan plan_of(const Json& golden, const RunOptions& run) {
  const auto fs = write_golden_model(golden);
  auto plan = MemoryPlan::of(*fs, "/tiny", run, 64);
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  return std::move(plan).value();
}

// As if the model had no others.
TEST(Gemma4, PlannedCacheIsThatOfLayersWithKeysOfTheirOwn) {
  Json donors = with_field(kSmall, "num_hidden_layers", 5);
  Json& text = donors["config"]["text_config"];
  text["num_kv_shared_layers"] = 0;
  text["layer_types"].erase(5);
  text["layer_types"].erase(5);
  text["layer_types"].erase(5);
  const auto config = parse_model_config(donors["config"].dump(), "config");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  for (const Numerics numerics : {Numerics::kNear, Numerics::kExact}) {
    const RunOptions run{.numerics = numerics};
    const uint64_t planned = plan_of(golden_case(kSmall), run).at(400).kv;
    const KvState own = make_kv_state(
        *config, KvQuantizations(5), mx::float32, uses_kernels(numerics));
    EXPECT_EQ(planned, own.bytes_for(400, 64));
    const auto model = load_golden(run, golden_case(kSmall));
    ASSERT_TRUE(model.is_ok()) << model.status().message();
    KvState kv = (*model)->make_kv();
    kv.reserve(400);
    const auto prompt = some_tokens(400);
    for (size_t at = 0; at < 400; at += 50) {
      step(**model, kv, std::span(prompt).subspan(at, 50));
    }
    EXPECT_LE(kv.bytes(), planned);
    EXPECT_GT(kv.bytes(), planned / 10 * 9);
  }
}

TEST(Gemma4, PlannedWeightsAreThoseThatAreNeeded) {
  Json golden = golden_case("gemma4_e4b");
  const auto planned = [&](Numerics numerics) {
    return plan_of(golden, {.numerics = numerics}).at(1).weights;
  };
  const uint64_t near = planned(Numerics::kNear);
  const uint64_t exact = planned(Numerics::kExact);
  golden["tensors"].push_back(
      {"model.vision_tower.more.weight", {1000, 1000}, 0});
  EXPECT_EQ(planned(Numerics::kNear), near);
  EXPECT_EQ(planned(Numerics::kExact), exact);
}

TEST(Gemma4, PlannedWorkHasTheInputsOfAllLayers) {
  const auto work = [](const Json& golden) {
    return plan_of(golden, {.numerics = Numerics::kNear}).at(1).work;
  };
  Json without = with_field(kSmall, "hidden_size_per_layer_input", 0);
  Json& tensors = without["tensors"];
  for (size_t i = tensors.size(); i-- > 0;) {
    if (tensors[i][0].get<std::string>().find("per_layer") !=
        std::string::npos) {
      tensors.erase(i);
    }
  }
  EXPECT_EQ(
      work(golden_case(kSmall)) - work(without), sizeof(float) * 64 * 8 * 32);
}

void expect_refused(
    const Json& golden,
    StatusCode code,
    const std::string& named) {
  for (const Numerics numerics : {Numerics::kNear, Numerics::kExact}) {
    const Status status = load_golden({.numerics = numerics}, golden).status();
    EXPECT_EQ(status.code(), code) << named << status.message();
    EXPECT_NE(status.message().find(named), std::string::npos)
        << status.message();
    EXPECT_EQ(status.message().find("/tiny"), 0u) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(Gemma4, VariantsThatItDoesNotHaveAreRefusedByName) {
  const std::pair<const char*, Json> variants[] = {
      {"hidden_activation", "silu"},
      {"attention_bias", true},
      {"use_bidirectional_attention", "all"},
      {"vocab_size_per_layer_input", 287}};
  for (const auto& [field, value] : variants) {
    expect_refused(
        with_field(kSmall, field, value), StatusCode::kUnsupported, field);
  }
}

TEST(Gemma4, FieldsThatMakeNoSenseAreNamed) {
  const std::pair<const char*, Json> bad[] = {
      {"layer_types", nullptr},
      {"layer_types", Json::array({"full_attention"})},
      {"rope_parameters", nullptr},
      {"global_head_dim", nullptr},
      {"global_head_dim", 63},
      {"global_head_dim", 1 << 19}, // times 4 heads
      {"num_kv_shared_layers", nullptr},
      {"num_kv_shared_layers", 8}, // all
      {"num_kv_shared_layers", 7}, // no full layer before them
      {"num_kv_shared_layers", -1},
      {"use_double_wide_mlp", 1},
      {"hidden_size_per_layer_input", 1 << 18}, // times 8 layers
      {"hidden_size_per_layer_input", "32"},
      {"final_logit_softcapping", -1},
      {"sliding_window", 0}};
  for (const auto& [field, value] : bad) {
    expect_refused(
        with_field(kSmall, field, value), StatusCode::kCorruption, field);
  }
  const char* const heads = "num_global_key_value_heads";
  for (const Json& value : {Json(3), Json(0), Json("1")}) { // of 4
    expect_refused(
        with_field(kLarge, heads, value), StatusCode::kCorruption, heads);
  }
  const std::pair<const char*, Json> bad_mixtures[] = {
      {"enable_moe_block", 1},
      {"num_experts", nullptr},
      {"num_experts", 1 << 20},
      {"top_k_experts", 9}, // of 8
      {"top_k_experts", 0},
      {"moe_intermediate_size", nullptr},
      {"intermediate_size", nullptr}};
  for (const auto& [field, value] : bad_mixtures) {
    expect_refused(
        with_field(kMixture, field, value), StatusCode::kCorruption, field);
  }
}

// Were memory taken before shapes are compared, it would be terabytes.
TEST(Gemma4, ConfigThatLiesAboutAShapeIsCaughtBeforeAllocation) {
  const std::tuple<const char*, const char*, int> lies[] = {
      {kSmall, "global_head_dim", 1 << 17},
      {kSmall, "head_dim", 1 << 17},
      {kSmall, "hidden_size", 1 << 20},
      {kSmall, "intermediate_size", 1 << 20},
      {kSmall, "hidden_size_per_layer_input", 1 << 17},
      {kSmall, "hidden_size_per_layer_input", 64},
      {kSmall, "vocab_size_per_layer_input", 1 << 22},
      {kSmall, "num_key_value_heads", 4},
      {kSmall, "num_kv_shared_layers", 2},
      {kLarge, "num_global_key_value_heads", 4},
      {kLarge, "num_kv_shared_layers", 1},
      {kMixture, "moe_intermediate_size", 1 << 20},
      {kMixture, "num_experts", 7},
      {kMixture, "intermediate_size", 96}};
  for (const auto& [model, field, value] : lies) {
    expect_refused(
        with_field(model, field, value), StatusCode::kCorruption, "");
  }
}

TEST(Gemma4, TensorsThatDoNotFitAreNamed) {
  const auto grow = [](Json& tensors, size_t i) {
    tensors[i][1][0] = tensors[i][1][0].get<int>() + 1;
  };
  const auto leave_out = [](Json& tensors, size_t i) { tensors.erase(i); };
  const std::pair<const char*, const char*> named[] = {
      {kSmall, "embed_tokens_per_layer.weight"},
      {kSmall, "per_layer_model_projection.weight"},
      {kSmall, "per_layer_projection_norm.weight"},
      {kSmall, "layers.0.per_layer_input_gate.weight"},
      {kSmall, "layers.0.per_layer_projection.weight"},
      {kSmall, "layers.0.post_per_layer_input_norm.weight"},
      {kSmall, "layers.2.self_attn.v_proj.weight"},
      {kSmall, "layers.5.mlp.down_proj.weight"},
      {kSmall, "layers.0.self_attn.k_norm.weight"},
      {kMixture, "layers.0.router.proj.weight"},
      {kMixture, "layers.0.router.scale"},
      {kMixture, "layers.0.router.per_expert_scale"},
      {kMixture, "layers.1.experts.switch_glu.up_proj.weight"},
      {kMixture, "layers.1.post_feedforward_layernorm_1.weight"},
      {kMixture, "layers.1.pre_feedforward_layernorm_2.weight"},
      {"gemma4_26b", "layers.1.experts.down_proj"}};
  for (const auto& [model, name] : named) {
    for (const auto& change :
         {std::function<void(Json&, size_t)>(grow), {leave_out}}) {
      Json json = golden_case(model);
      Json& tensors = json["tensors"];
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i][0].get<std::string>().ends_with(name)) {
          change(tensors, i);
          break;
        }
      }
      expect_refused(json, StatusCode::kCorruption, name);
    }
  }
  // More numbers than one.
  Json json = golden_case(kLarge);
  for (Json& tensor : json["tensors"]) {
    if (tensor[0].get<std::string>().ends_with("layers.1.layer_scalar")) {
      tensor[1][0] = 2;
    }
  }
  expect_refused(json, StatusCode::kCorruption, "layers.1.layer_scalar");
}

// Numbered as caches are: the last three layers have none.
TEST(Gemma4, KvConfigOfALayerWithoutKeysIsRefused) {
  const auto load_with = [](int layer) {
    const auto fs = write_golden_model(golden_case(kSmall));
    const Json list = {{{"layer_idx", layer}, {"bits", 4}, {"group_size", 32}}};
    EXPECT_TRUE(
        write_file(*fs, "/tiny/kv_config.json", as_bytes(list.dump())).is_ok());
    return load_model(*fs, "/tiny", {.numerics = Numerics::kNear}).status();
  };
  EXPECT_TRUE(load_with(4).is_ok());
  const Status status = load_with(5);
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(status.message().find("layer_idx"), std::string::npos);
}

} // namespace
} // namespace ingle
