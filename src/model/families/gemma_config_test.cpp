// What the gemmas read of their config.json.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/load_model.h"
#include "model/testing/config_json.h"
#include "model/testing/golden_models.h"

namespace ingle {
namespace {

const char* const kSmall = "gemma4_e4b_4bit";
const char* const kLarge = "gemma4_12b_4bit";

Json golden_case(const std::string& name) {
  return golden_case_in("tiny_gemma4.json", name);
}

Json valid() {
  Json json = valid_config();
  json["model_type"] = "gemma3_text";
  json["head_dim"] = 16;
  return json;
}

TEST(GemmaConfig, GemmaScalesEmbeddingsByARoundedRoot) {
  Json json = valid();
  json["hidden_size"] = 3584; // its root is 59.867
  for (const char* type : {"gemma", "gemma2", "gemma3_text"}) {
    json["model_type"] = type;
    const auto config = parse_model_config(json.dump(), "m/config.json");
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    EXPECT_EQ(config->embedding_scale, 59.75f);
  }
}

TEST(GemmaConfig, SoftCapsThatAreNullAreNone) {
  Json json = valid();
  json["model_type"] = "gemma2";
  json["attn_logit_softcapping"] = nullptr;
  const auto config = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(config->attention_soft_cap, 0);
  EXPECT_EQ(config->logits_soft_cap, 30);
}

// As transformers has it; mlx-lm does not look.
TEST(GemmaConfig, Gemma3HasTheSoftCapsThatItsFileSays) {
  Json json = valid();
  json["attn_logit_softcapping"] = nullptr;
  const auto parse = [&] {
    return *parse_model_config(json.dump(), "m/config.json");
  };
  EXPECT_EQ(parse().attention_soft_cap, 0);
  EXPECT_EQ(parse().logits_soft_cap, 0);
  json["attn_logit_softcapping"] = 50.0;
  json["final_logit_softcapping"] = 30.0;
  EXPECT_EQ(parse().attention_soft_cap, 50);
  EXPECT_EQ(parse().logits_soft_cap, 30);
}

// Such files are of models that embed text.
TEST(GemmaConfig, Gemma3WhoseTokensSeeLaterOnesIsRefusedByName) {
  Json json = valid();
  for (const Json& value : {Json(nullptr), Json(false)}) {
    json["use_bidirectional_attention"] = value;
    EXPECT_TRUE(parse_model_config(json.dump(), "m/config.json").is_ok());
  }
  json["use_bidirectional_attention"] = true;
  EXPECT_EQ(parse_failure(json).code(), StatusCode::kUnsupported);
  EXPECT_EQ(
      parse_failure(json).message(),
      "m/config.json: use_bidirectional_attention is not supported for "
      "gemma3_text");
  json["use_bidirectional_attention"] = "all";
  EXPECT_EQ(parse_failure(json).code(), StatusCode::kCorruption);
}

TEST(GemmaConfig, RopesOfEachKindOfLayerAreRead) {
  Json json = valid();
  json["rope_parameters"] = {
      {"full_attention",
       {{"rope_type", "linear"}, {"factor", 8}, {"rope_theta", 5e5}}},
      {"sliding_attention", {{"rope_theta", 2e4}}}};
  const auto config = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  ASSERT_EQ(config->ropes.size(), 2u);
  EXPECT_EQ(config->ropes[0].kind, RopeKind::kLinear);
  EXPECT_EQ(config->ropes[0].factor, 8);
  EXPECT_EQ(config->ropes[0].theta, 5e5f);
  EXPECT_EQ(config->ropes[1].theta, 2e4f);
}

// As Gemma 3's authors publish them: what is as usual is left out.
TEST(GemmaConfig, TextPartOfGemma3HasWhatItsFileLeavesOut) {
  const Json json = {
      {"model_type", "gemma3"},
      {"eos_token_id", {1, 106}},
      {"text_config",
       {{"hidden_size", 2560},
        {"intermediate_size", 10240},
        {"model_type", "gemma3_text"},
        {"num_hidden_layers", 34},
        {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
        {"sliding_window", 1024}}}};
  const auto config = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(config->num_attention_heads, 8);
  EXPECT_EQ(config->num_key_value_heads, 4);
  EXPECT_EQ(config->head_dim, 256);
  EXPECT_EQ(config->vocab_size, 262208);
  EXPECT_EQ(config->max_position_embeddings, 131072);
  EXPECT_EQ(config->layers[0].window, 1024);
  EXPECT_EQ(config->layers[5].window, 0);
  EXPECT_EQ(config->ropes[0].factor, 8);
  EXPECT_EQ(config->eos, (std::vector<TokenId>{1, 106}));
  Json alone = json["text_config"];
  EXPECT_NE(
      parse_failure(alone).message().find("num_attention_heads"),
      std::string::npos);
}

// With the heads of full layers said layer by layer; `kv_heads` 0: the
// model's.
Json per_layer(const char* name, int head_dim, int kv_heads) {
  Json golden = golden_case(name);
  Json& text = golden["config"]["text_config"];
  text.erase("global_head_dim");
  text.erase("num_global_key_value_heads");
  Json& own = text["per_layer_config"] = Json::object();
  for (size_t i = 0; i < text["layer_types"].size(); ++i) {
    if (text["layer_types"][i] == "full_attention") {
      Json& layer = own["0" + std::to_string(i)];
      layer["head_dim"] = head_dim;
      if (kv_heads != 0) {
        layer["num_key_value_heads"] = kv_heads;
      }
    }
  }
  return golden;
}

Result<ModelConfig> config_of(const Json& golden) {
  return parse_model_config(golden["config"].dump(), "/tiny/config.json");
}

TEST(Gemma4Config, TextAloneIsTheSameModel) {
  Json golden = golden_case(kLarge);
  const auto expected = config_of(golden);
  golden["config"] = golden["config"]["text_config"];
  for (const char* type : {"gemma4_text", "gemma4_unified_text"}) {
    golden["config"]["model_type"] = type;
    const auto config = config_of(golden);
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    EXPECT_EQ(config->tier, SupportTier::kTargeted);
    EXPECT_EQ(config->ropes, expected->ropes);
    EXPECT_EQ(config->norms_values, expected->norms_values);
    EXPECT_EQ(
        config->head_dim_of(config->layers[1]),
        expected->head_dim_of(expected->layers[1]));
  }
}

// As transformers 5.15 and later writes them.
TEST(Gemma4Config, HeadsThatAreSaidLayerByLayerAreTheSame) {
  const std::pair<const char*, Json> both[] = {
      {kSmall, per_layer(kSmall, 64, 0)}, {kLarge, per_layer(kLarge, 64, 1)}};
  for (const auto& [name, golden] : both) {
    const auto expected = config_of(golden_case(name));
    const auto config = config_of(golden);
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    for (size_t i = 0; i < expected->layers.size(); ++i) {
      const LayerConfig& own = config->layers[i];
      const LayerConfig& same = expected->layers[i];
      EXPECT_EQ(config->head_dim_of(own), expected->head_dim_of(same));
      EXPECT_EQ(
          config->key_value_heads_of(own), expected->key_value_heads_of(same));
      EXPECT_EQ(own.values_are_keys, same.values_are_keys);
    }
    const auto model = load_golden({.numerics = Numerics::kNear}, golden);
    EXPECT_TRUE(model.is_ok()) << model.status().message();
  }
}

TEST(Gemma4Config, LayersThatAreNotNamedHaveTheHeadsOfTheModel) {
  Json golden = per_layer(kSmall, 64, 0);
  golden["config"]["text_config"]["per_layer_config"] = Json::object();
  const auto config = config_of(golden);
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  for (const LayerConfig& layer : config->layers) {
    EXPECT_EQ(config->head_dim_of(layer), 32);
    EXPECT_EQ(config->key_value_heads_of(layer), 2);
  }
}

TEST(Gemma4Config, HeadsThatAreSaidTwiceHaveToAgree) {
  for (const auto& [field, right, wrong] :
       {std::tuple{"global_head_dim", 64, 32},
        std::tuple{"num_global_key_value_heads", 1, 2}}) {
    Json golden = per_layer(kLarge, 64, 1);
    Json& text = golden["config"]["text_config"];
    text[field] = right;
    EXPECT_TRUE(config_of(golden).is_ok()) << field;
    text[field] = wrong;
    const Status status = config_of(golden).status();
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << field;
    EXPECT_NE(status.message().find(field), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("layer 1"), std::string::npos)
        << status.message();
  }
}

TEST(Gemma4Config, FieldsOfALayerThatMakeNoSenseAreNamed) {
  const auto expect_named = [](const Json& own,
                               StatusCode code,
                               const std::string& named) {
    Json golden = per_layer(kLarge, 64, 1);
    Json& fields = golden["config"]["text_config"]["per_layer_config"];
    if (own.is_object()) {
      fields.update(own);
    } else {
      fields = own;
    }
    const Status status = config_of(golden).status();
    EXPECT_EQ(status.code(), code) << own;
    EXPECT_NE(
        status.message().find("per_layer_config" + named), std::string::npos)
        << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  };
  const std::pair<const char*, Json> bad[] = {
      {"1", {{"head_dim", 64}}}, // and "01"
      {"04", Json::object()}, // of four
      {"-1", Json::object()},
      {"", Json::object()},
      {"1x", Json::object()},
      {"99999999999999999999999", Json::object()},
      {"03", 64},
      {"03", {{"head_dim", 63}}},
      {"03", {{"head_dim", 0}}},
      {"03", {{"head_dim", "64"}}},
      {"03", {{"head_dim", 1 << 19}}}, // times 4 heads
      {"03", {{"num_key_value_heads", 3}}}}; // of 4
  for (const auto& [key, value] : bad) {
    expect_named(
        {{key, value}},
        StatusCode::kCorruption,
        "['" + std::string(key) + "']");
  }
  expect_named(Json(4), StatusCode::kCorruption, " has to be an object");
  expect_named(
      {{"03", {{"sliding_window", 8}}}},
      StatusCode::kUnsupported,
      "['03']: 'sliding_window'");
  expect_named(
      {{"03", {{"head_dim", 128}}}},
      StatusCode::kUnsupported,
      " has other heads for layer 3 than for layer 1");
  expect_named(
      {{"02", {{"num_key_value_heads", 1}}}},
      StatusCode::kUnsupported,
      " has other heads for layer 2 than for layer 0");
}

} // namespace
} // namespace ingle
