// What config.json says of quantisation.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/testing/config_json.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

// Acceptance 199.
TEST(QuantizationConfig, config_overrides_and_false_quant) {
  Json json = valid_config();
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

TEST(QuantizationConfig, Mxfp4IsAModeOfAModuleOrHowAModelWasPublished) {
  Json json = valid_config();
  json["quantization"] = {
      {"bits", 8},
      {"group_size", 64},
      {"mode", "affine"},
      {"model.x", {{"bits", 4}, {"group_size", 32}, {"mode", "mxfp4"}}}};
  const auto mixed = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(mixed.is_ok()) << mixed.status().message();
  EXPECT_EQ(mixed->quantization.of("model.x"), kMxfp4);
  EXPECT_EQ(mixed->quantization.of("model.y"), (Quantization{64, 8}));

  json.erase("quantization");
  json["quantization_config"] = {
      {"quant_method", "mxfp4"},
      {"modules_to_not_convert", {"model.embed_tokens"}}};
  const auto published = parse_model_config(json.dump(), "m/config.json");
  ASSERT_TRUE(published.is_ok()) << published.status().message();
  EXPECT_EQ(published->quantization.of("model.x"), kMxfp4);
}

// Their tensors would be taken for others.
TEST(QuantizationConfig, MethodsOfQuantisationOfOthersAreRefusedByName) {
  for (const char* method :
       {"fp8", "compressed-tensors", "gptq", "awq", "bitsandbytes"}) {
    Json json = valid_config();
    json["quantization_config"] = {
        {"quant_method", method}, {"bits", 4}, {"group_size", 128}};
    const Status status = parse_failure(json);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_EQ(
        status.message(),
        "m/config.json: quantization_config: quant_method '" +
            std::string(method) +
            "' is not supported; weights have to be unquantised, or quantised "
            "as MLX's affine or mxfp4");
  }
}

TEST(QuantizationConfig, QuantisationIsNamedByTheKeyThatTheFileHas) {
  for (const std::string key : {"quantization", "quantization_config"}) {
    const Json wrong[] = {
        4,
        {{"bits", 4}},
        {{"quant_method", 4}},
        {{"bits", 7}, {"group_size", 32}}};
    for (const Json& value : wrong) {
      Json json = valid_config();
      json[key] = value;
      EXPECT_EQ(parse_failure(json).message().find("m/config.json: " + key), 0u)
          << parse_failure(json).message();
      const std::string rest = parse_failure(json).message().substr(
          ("m/config.json: " + key).size());
      EXPECT_TRUE(rest.starts_with(":") || rest.starts_with(" ")) << rest;
    }
  }
}

} // namespace
} // namespace ingle
