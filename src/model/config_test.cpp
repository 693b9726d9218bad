#include "model/config.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ingle {
namespace {

using Json = nlohmann::json;

Json valid() {
  return {
      {"model_type", "llama"},
      {"hidden_size", 64},
      {"intermediate_size", 128},
      {"num_hidden_layers", 3},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"vocab_size", 288},
      {"max_position_embeddings", 512},
      {"rms_norm_eps", 1e-5}};
}

Status parse_failure(const Json& json) {
  return parse_model_config(json.dump(), "m/config.json").status();
}

TEST(ModelConfig, FallbacksAreThoseOfTheEcosystem) {
  Json json = valid();
  json.erase("num_key_value_heads");
  const auto config = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(config->num_key_value_heads, 4);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_EQ(config->rope.theta, 10000);
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
    Json json = valid();
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
      {"rope_scaling", {{"type", "linear"}, {"factor", 0}}},
      {"rope_scaling",
       {{"type", "llama3"}, {"factor", 8}, {"low_freq_factor", 0}}},
      {"eos_token_id", int64_t{1} << 32},
      {"quantization", 4},
      {"quantization", {{"bits", 4}}},
      {"eos_token_id", "2"},
      {"eos_token_id", {1, -2}}};
  for (const auto& [field, value] : bad) {
    Json json = valid();
    json[field] = value;
    const Status status = parse_failure(json);
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << field << value;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(ModelConfig, TextThatIsNoJsonIsRefused) {
  for (const char* text : {"", "{", "[]", "null", "{}x"}) {
    EXPECT_FALSE(parse_model_config(text, "m/config.json").is_ok()) << text;
  }
}

TEST(ModelConfig, DeepNestingAndDoubledKeysAreRefused) {
  std::string text = valid().dump();
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
  Json json = valid();
  json["model_type"] = "mamba";
  const Status status = parse_failure(json);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(
      status.message(),
      "m/config.json: model_type 'mamba' is not supported; this version runs: "
      "llama");
}

TEST(Acceptance, assistant_drafter_refused) {
  Json json = valid();
  json["model_type"] = "gemma4_assistant";
  const Status status = parse_failure(json);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("drafter"), std::string::npos);
}

TEST(ModelConfig, VariantsThatChangeTheResultAreRefused) {
  const std::pair<const char*, Json> variants[] = {
      {"layer_types", {"full_attention", "sliding_attention"}},
      {"layer_types", "full_attention"},
      {"hidden_act", "gelu"},
      {"partial_rotary_factor", 0.5},
      {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4}}},
      {"quantization", {{"bits", 7}, {"group_size", 32}}},
      {"quantization", {{"bits", 4}, {"group_size", 16}}},
      {"quantization", {{"bits", 4}, {"group_size", 32}, {"mode", "mxfp4"}}}};
  for (const auto& [field, value] : variants) {
    Json json = valid();
    json[field] = value;
    EXPECT_EQ(parse_failure(json).code(), StatusCode::kUnsupported) << field;
  }
}

TEST(ModelConfig, QuantisationOverridesGoByPath) {
  Json json = valid();
  json["quantization"] = {
      {"bits", 4},
      {"group_size", 32},
      {"model.embed_tokens", {{"bits", 8}, {"group_size", 64}}},
      {"lm_head", false}};
  const auto config = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  const auto& quantization = config->quantization;
  EXPECT_EQ(quantization.of("model.embed_tokens"), (Quantization{64, 8}));
  EXPECT_EQ(quantization.of("model.x"), (Quantization{32, 4}));
  EXPECT_EQ(quantization.of("lm_head"), std::nullopt);
}

} // namespace
} // namespace ingle
