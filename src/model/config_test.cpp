#include "model/config.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/testing/config_json.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

TEST(ModelConfig, FallbacksAreThoseOfTheEcosystem) {
  Json json = valid_config();
  json.erase("num_key_value_heads");
  const auto config = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(config->num_key_value_heads, 4);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_EQ(config->ropes.front().theta, 10000);
  EXPECT_FALSE(config->quantization.of("model.layers.0.mlp.up_proj"));
}

TEST(ModelConfig, EachMissingFieldIsNamedWithItsFile) {
  for (const char* field :
       {"model_type",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "max_position_embeddings",
        "rms_norm_eps"}) {
    Json json = valid_config();
    json.erase(field);
    const Status status = parse_failure(json);
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << field;
    EXPECT_NE(status.message().find("m/config.json"), std::string::npos);
    EXPECT_NE(status.message().find(field), std::string::npos)
        << status.message();
  }
}

TEST(ModelConfig, WrongTypesAndRangesAreRefused) {
  const std::pair<const char*, Json> bad[] = {
      {"hidden_size", "64"},
      {"hidden_size", 0},
      {"hidden_size", -1},
      {"hidden_size", 1.5},
      {"hidden_size", int64_t{1} << 62},
      {"num_hidden_layers", true},
      {"num_key_value_heads", 3}, // 4 heads are no multiple
      {"head_dim", 15}, // halves are rotated against each other
      {"head_dim", 1 << 20}, // times 4 heads
      {"rms_norm_eps", "small"},
      {"rms_norm_eps", 0},
      {"rope_theta", 1e300},
      {"tie_word_embeddings", 1},
      {"rope_theta", -1},
      {"rope_scaling", "linear"},
      {"partial_rotary_factor", 0.32}, // 5 of 16 dimensions
      {"rope_scaling", {{"type", "linear"}, {"factor", 0}}},
      {"rope_scaling",
       {{"type", "llama3"}, {"factor", 8}, {"low_freq_factor", 0}}},
      {"eos_token_id", int64_t{1} << 32},
      {"quantization", 4},
      {"quantization", {{"bits", 4}}},
      {"eos_token_id", "2"},
      {"eos_token_id", {1, -2}}};
  for (const auto& [field, value] : bad) {
    Json json = valid_config();
    json[field] = value;
    const Status status = parse_failure(json);
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << field << value;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(ModelConfig, NumberOfLayersHasALimit) {
  Json json = valid_config();
  json["num_hidden_layers"] = 4096;
  EXPECT_TRUE(parse_model_config(json.dump(), "m/config.json").is_ok());
  json["num_hidden_layers"] = 4097;
  EXPECT_EQ(
      parse_failure(json).message(),
      "m/config.json: the field 'num_hidden_layers' has to be an integer from "
      "1 to 4096");
}

TEST(ModelConfig, TextThatIsNoJsonIsRefused) {
  for (const char* text : {"", "{", "[]", "null", "{}x"}) {
    EXPECT_FALSE(parse_model_config(text, "m/config.json").is_ok()) << text;
  }
}

TEST(ModelConfig, DeepNestingAndDoubledKeysAreRefused) {
  std::string text = valid_config().dump();
  text.back() = ',';
  const std::string deep = text +
      "\"eos_token_id\":" + std::string(300000, '[') +
      std::string(300000, ']') + "}";
  EXPECT_EQ(
      parse_model_config(deep, "m/config.json").status().code(),
      StatusCode::kCorruption);
  const std::string doubled = text + "\"hidden_size\":64}";
  EXPECT_EQ(
      parse_model_config(doubled, "m/config.json").status().code(),
      StatusCode::kCorruption);
}

TEST(Acceptance, unsupported_type_message) {
  Json json = valid_config();
  json["model_type"] = "mamba";
  const Status status = parse_failure(json);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(
      status.message(),
      "m/config.json: model_type 'mamba' is not supported; this version runs: "
      "gemma, gemma2, gemma3, gemma3_text, gemma4, gemma4_text, "
      "gemma4_unified, gemma4_unified_text, glm4, gpt_oss, granite, iquestcoder, llama, "
      "ministral3, mistral, mistral3, olmo2, olmo3, phi3, qwen2, qwen3, qwen3_5, qwen3_5_moe, "
      "qwen3_5_moe_text, qwen3_5_text, qwen3_moe, qwen3_next, smollm3, "
      "starcoder2");
  json["model_type"] = "kimi_k2";
  EXPECT_EQ(
      parse_failure(json).message().find(
          "m/config.json: model_type 'kimi_k2' (a kind of deepseek_v3) is not "
          "supported; this version runs: gemma, "),
      0u);
}

TEST(Acceptance, assistant_drafter_refused) {
  Json json = valid_config();
  json["model_type"] = "gemma4_assistant";
  const Status status = parse_failure(json);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("drafter"), std::string::npos);
}

TEST(ModelConfig, VariantsThatChangeTheResultAreRefused) {
  const std::pair<const char*, Json> variants[] = {
      {"layer_types", {"full_attention", "full_attention", "mamba"}},
      {"hidden_act", "relu2"},
      {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 4}}},
      {"quantization", {{"bits", 7}, {"group_size", 32}}},
      {"quantization", {{"bits", 4}, {"group_size", 16}}},
      {"quantization", {{"bits", 8}, {"group_size", 32}, {"mode", "mxfp8"}}},
      {"quantization", {{"bits", 4}, {"group_size", 64}, {"mode", "mxfp4"}}},
      {"quantization", {{"bits", 8}, {"group_size", 32}, {"mode", "mxfp4"}}}};
  for (const auto& [field, value] : variants) {
    Json json = valid_config();
    json[field] = value;
    EXPECT_EQ(parse_failure(json).code(), StatusCode::kUnsupported) << field;
  }
}

TEST(ModelConfig, FamiliesDifferWhereTheirFieldsAreAbsent) {
  Json json = valid_config();
  json["head_dim"] = 32;
  const auto parse = [&](const char* type) {
    json["model_type"] = type;
    auto config = parse_model_config(json.dump(), "m/config.json");
    EXPECT_TRUE(config.is_ok()) << config.status().message();
    return *config;
  };
  EXPECT_FALSE(parse("mistral").qkv_bias);
  EXPECT_EQ(parse("mistral").ropes[0].theta, 1e4f);
  EXPECT_TRUE(parse("qwen2").qkv_bias);
  EXPECT_FALSE(parse("qwen2").output_bias);
  EXPECT_EQ(parse("qwen2").ropes[0].theta, 1e6f);
  EXPECT_EQ(parse("qwen3").qk_norm, QkNorm::kHead);
  json["num_hidden_layers"] = 5;
  std::vector<bool> rotates;
  for (const LayerConfig& layer : parse("smollm3").layers) {
    rotates.push_back(layer.rope.has_value());
  }
  EXPECT_EQ(rotates, (std::vector<bool>{true, true, true, false, true}));
}

TEST(ModelConfig, LaterFamiliesDifferWhereTheirFieldsAreAbsent) {
  Json json = valid_config();
  json["head_dim"] = 32;
  json["sliding_window"] = 24;
  json["rope_parameters"] = {{"rope_type", "default"}};
  const auto parse = [&](const char* type) {
    json["model_type"] = type;
    auto config = parse_model_config(json.dump(), "m/config.json");
    EXPECT_TRUE(config.is_ok()) << config.status().message();
    return *config;
  };
  EXPECT_EQ(parse("gemma").activation, Activation::kGelu);
  EXPECT_EQ(parse("gemma").tie_word_embeddings, true);
  EXPECT_TRUE(parse("glm4").ropes[0].traditional);
  EXPECT_EQ(parse("glm4").ropes[0].rotated_dims(32), 16);
  EXPECT_TRUE(parse("glm4").qkv_bias);
  EXPECT_EQ(parse("glm4").tie_word_embeddings, false);
  EXPECT_EQ(parse("olmo3").ropes[0].theta, 5e5f);
  EXPECT_EQ(parse("phi3").mlp, MlpKind::kFusedGated);
  json.erase("rms_norm_eps");
  EXPECT_EQ(parse("starcoder2").rms_norm_eps, 1e-5f);
  EXPECT_EQ(parse("starcoder2").ropes[0].theta, 1e5f);
  EXPECT_TRUE(parse("starcoder2").output_bias);
  json["norm_epsilon"] = 1e-6;
  EXPECT_EQ(parse("starcoder2").rms_norm_eps, 1e-6f);
}

// Spec C2.
TEST(ModelConfig, MiniCpm5IsALlama) {
  Json json = valid_config();
  json["hidden_size"] = 1536;
  json["num_hidden_layers"] = 24;
  json["num_attention_heads"] = 16;
  json["num_key_value_heads"] = 2;
  json["head_dim"] = 128;
  json["vocab_size"] = 130560;
  json["tie_word_embeddings"] = false;
  const auto config = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(config->head_dim, 128);
  EXPECT_FLOAT_EQ(config->attention_scale, std::pow(128.0f, -0.5f));
  EXPECT_EQ(config->tier, SupportTier::kTargeted);
  json["num_hidden_layers"] = 25; // another llama
  EXPECT_EQ(parse_model_config(json.dump(), "m")->tier, SupportTier::kGeneric);
}

TEST(ModelConfig, Phi3WantsItsScalingWhole) {
  Json json = valid_config();
  json["model_type"] = "phi3";
  json["original_max_position_embeddings"] = 256;
  json["rope_scaling"] = {
      {"type", "longrope"},
      {"long_factor", {1, 1, 1, 1, 1, 1, 1, 1}},
      {"short_factor", {1, 1, 1, 1, 1, 1, 1, 1}}};
  EXPECT_TRUE(parse_model_config(json.dump(), "m").is_ok());
  json["rope_scaling"]["type"] = "yarn"; // as others would have it
  const auto config = parse_model_config(json.dump(), "m");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(config->ropes[0], RopeConfig{});
  for (const char* field : {"type", "long_factor"}) {
    Json without = json;
    without["rope_scaling"].erase(field);
    EXPECT_EQ(parse_failure(without).code(), StatusCode::kCorruption);
    EXPECT_NE(parse_failure(without).message().find(field), std::string::npos);
  }
}

TEST(ModelConfig, WindowsThatQwenHasWithoutNamingLayersAreRefused) {
  for (const char* type : {"qwen2", "qwen3"}) {
    Json json = valid_config();
    json["model_type"] = type;
    json["head_dim"] = 16;
    json["sliding_window"] = 24;
    json["max_window_layers"] = 2;
    EXPECT_TRUE(parse_model_config(json.dump(), "m").is_ok());
    json["use_sliding_window"] = true;
    const Status status = parse_failure(json);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("use_sliding_window"), std::string::npos);
    json["max_window_layers"] = 3; // of three
    EXPECT_TRUE(parse_model_config(json.dump(), "m").is_ok());
  }
}

TEST(ModelConfig, WindowedLayersHaveTheRopeThatIsSaidOfThem) {
  Json json = valid_config();
  json["sliding_window"] = 24;
  json["layer_types"] = {
      "sliding_attention", "full_attention", "sliding_attention"};
  json["rope_parameters"] = {
      {"full_attention",
       {{"rope_type", "yarn"},
        {"factor", 8},
        {"original_max_position_embeddings", 64},
        {"rope_theta", 5e5}}},
      {"sliding_attention", {{"rope_theta", 5e5}}}};
  const auto parse = [&](const char* type) {
    json["model_type"] = type;
    auto config = parse_model_config(json.dump(), "m/config.json");
    EXPECT_TRUE(config.is_ok()) << config.status().message();
    return *config;
  };
  for (const char* type : {"llama", "olmo3", "ministral3"}) {
    const ModelConfig config = parse(type);
    ASSERT_EQ(config.ropes.size(), 2u) << type;
    EXPECT_EQ(config.ropes[0].kind, RopeKind::kYarn);
    EXPECT_EQ(config.ropes[1].kind, RopeKind::kDefault);
    EXPECT_EQ(config.layers[0].rope, 1u);
    EXPECT_EQ(config.layers[1].rope, 0u);
  }
  // In one for all layers Olmo's windows still have plain positions.
  json["rope_scaling"] = json["rope_parameters"]["full_attention"];
  json.erase("rope_parameters");
  EXPECT_EQ(parse("llama").ropes.size(), 1u);
  EXPECT_EQ(parse("olmo3").ropes.size(), 2u);
  json.erase("layer_types");
  json["num_hidden_layers"] = 5;
  std::vector<int> windows;
  for (const LayerConfig& layer : parse("olmo3").layers) {
    windows.push_back(layer.window);
  }
  EXPECT_EQ(windows, (std::vector<int>{24, 24, 24, 0, 24}));
}

TEST(ModelConfig, WindowsAreThoseOfTheirLayers) {
  const auto windows = [](const Json& json) {
    const auto config = parse_model_config(json.dump(), "m/config.json");
    EXPECT_TRUE(config.is_ok()) << config.status().message();
    std::vector<int> result;
    for (const LayerConfig& layer : config->layers) {
      result.push_back(layer.window);
    }
    return result;
  };
  Json json = valid_config();
  json["sliding_window"] = 24;
  EXPECT_EQ(windows(json), (std::vector<int>{0, 0, 0}));
  json["layer_types"] = {
      "sliding_attention", "full_attention", "sliding_attention"};
  EXPECT_EQ(windows(json), (std::vector<int>{24, 0, 24}));
  json["head_dim"] = 16;
  json["model_type"] = "gemma3_text";
  EXPECT_EQ(windows(json), (std::vector<int>{24, 0, 24}));
  json.erase("layer_types");
  json["sliding_window_pattern"] = 3;
  EXPECT_EQ(windows(json), (std::vector<int>{24, 24, 0}));
  json["model_type"] = "qwen3";
  json["layer_types"] = {
      "sliding_attention", "full_attention", "sliding_attention"};
  EXPECT_EQ(parse_failure(json).code(), StatusCode::kUnsupported);
  json["model_type"] = "llama";
  json.erase("sliding_window");
  EXPECT_EQ(parse_failure(json).code(), StatusCode::kCorruption);
}

TEST(ModelConfig, FieldsOfAFamilyAreChecked) {
  const std::tuple<const char*, const char*, Json> bad[] = {
      {"qwen3", "head_dim", nullptr},
      {"llama", "attention_bias", 1},
      {"llama", "layer_types", {"full_attention"}},
      {"llama", "layer_types", "full_attention"},
      {"gemma", "head_dim", nullptr},
      {"ministral3", "rope_parameters", nullptr},
      {"olmo3", "sliding_window", nullptr},
      {"smollm3", "no_rope_layers", {1, 0}},
      {"smollm3", "no_rope_layers", {1, 0, 2}},
      {"smollm3", "no_rope_layers", "all"},
      {"smollm3", "no_rope_layer_interval", 0}};
  for (const auto& [type, field, value] : bad) {
    Json json = valid_config();
    json["model_type"] = type;
    json[field] = value;
    const Status status = parse_failure(json);
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << field << value;
    EXPECT_NE(status.message().find(field), std::string::npos)
        << status.message();
  }
}

TEST(ModelConfig, WrapperHasTheFamilyOfItsText) {
  Json json = {{"model_type", "mistral3"}, {"text_config", valid_config()}};
  Json& text = json["text_config"];
  const auto parse = [&] {
    auto config = parse_model_config(json.dump(), "m/config.json");
    EXPECT_TRUE(config.is_ok()) << config.status().message();
    return std::move(config).value();
  };
  EXPECT_EQ(parse().ropes[0].theta, 1e4f);
  text["model_type"] = "qwen2";
  EXPECT_TRUE(parse().qkv_bias);
  EXPECT_EQ(parse().ropes[0].theta, 1e6f);
  text.erase("model_type"); // a llama then
  EXPECT_FALSE(parse().qkv_bias);
  text["model_type"] = "mistral4";
  const Status status = parse_failure(json);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(
      status.message().find("text_config: model_type 'mistral4'"),
      std::string::npos)
      << status.message();
}

TEST(ModelConfig, TokensThatEndAreThoseOfTheTextAndOfTheWhole) {
  Json json = {{"model_type", "mistral3"}, {"text_config", valid_config()}};
  const auto eos = [&] {
    return parse_model_config(json.dump(), "m/config.json")->eos;
  };
  EXPECT_EQ(eos(), std::vector<TokenId>());
  json["eos_token_id"] = {1, 106};
  EXPECT_EQ(eos(), (std::vector<TokenId>{1, 106}));
  json["text_config"]["eos_token_id"] = 7;
  EXPECT_EQ(eos(), (std::vector<TokenId>{7, 1, 106}));
  json["text_config"]["eos_token_id"] = {106, 106};
  EXPECT_EQ(eos(), (std::vector<TokenId>{106, 1}));
  json["eos_token_id"] = "1";
  EXPECT_EQ(parse_failure(json).code(), StatusCode::kCorruption);
}

TEST(ModelConfig, HeadThatOnlyTheTextSaysIsThereIsAsTheWeightsHaveIt) {
  constexpr std::optional<bool> kNothing;
  const std::
      tuple<std::optional<bool>, std::optional<bool>, std::optional<bool>>
          cases[] = {
              {kNothing, kNothing, kNothing},
              {kNothing, true, true},
              {kNothing, false, false},
              {true, kNothing, true},
              {true, false, true},
              {true, true, true},
              {false, kNothing, false},
              {false, false, false},
              {false, true, kNothing}};
  for (const auto& [text, whole, expected] : cases) {
    Json json = {{"model_type", "mistral3"}, {"text_config", valid_config()}};
    if (text) {
      json["text_config"]["tie_word_embeddings"] = *text;
    }
    if (whole) {
      json["tie_word_embeddings"] = *whole;
    }
    const auto config = parse_model_config(json.dump(), "m/config.json");
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    EXPECT_EQ(config->tie_word_embeddings, expected) << json;
  }
}

} // namespace
} // namespace ingle
