// What the decoder takes from files that are not as their config says. What it
// computes: model_test.cpp.
#include "model/families/decoder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/load_model.h"
#include "model/testing/tiny_model.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

const std::vector<Json>& family_cases() {
  static const auto* cases = [] {
    const auto text = make_posix_file_system()->read(
        std::string(INGLE_TEST_DATA) + "/tiny_families.json");
    const Json golden = Json::parse(*text);
    return new std::vector<Json>(
        golden["cases"].begin(), golden["cases"].end());
  }();
  return *cases;
}

class DecoderTest : public testing::TestWithParam<size_t> {
 protected:
  const Json& golden() const {
    return family_cases()[GetParam()];
  }

  // Loads the golden's weights with another config.
  Status load(const Json& config, Numerics numerics) {
    TinyModel tiny{
        config.dump(), {}, golden()["config"].contains("quantization")};
    for (const Json& tensor : golden()["tensors"]) {
      tiny.tensors.push_back({tensor[0], tensor[1]});
      if (tensor[2].is_number()) {
        tiny.tensors.back().exponent = tensor[2].get<int>();
      }
    }
    const auto fs = make_memory_file_system();
    EXPECT_TRUE(write_tiny_model(*fs, "/tiny", tiny).is_ok());
    return load_model(*fs, "/tiny", {.numerics = numerics, .threads = 1})
        .status();
  }
};

INSTANTIATE_TEST_SUITE_P(
    Families,
    DecoderTest,
    testing::Range(size_t{0}, family_cases().size()),
    [](const auto& each) {
      return family_cases()[each.param]["name"].template get<std::string>();
    });

// Were memory taken before the shapes are compared, it would be terabytes.
TEST_P(DecoderTest, ConfigThatLiesAboutAShapeIsCaughtBeforeAllocation) {
  const std::pair<const char*, int> lies[] = {
      {"hidden_size", 1 << 20},
      {"intermediate_size", 1 << 20},
      {"intermediate_size", 96},
      {"vocab_size", 1 << 22},
      {"num_attention_heads", 1 << 14},
      {"num_key_value_heads", 1},
      {"head_dim", 1 << 16},
      {"num_hidden_layers", 1 << 20}};
  for (const Numerics numerics : {Numerics::kExact, Numerics::kNear}) {
    ASSERT_TRUE(load(golden()["config"], numerics).is_ok());
    for (const auto& [field, value] : lies) {
      Json config = golden()["config"];
      if (config.value(field, 0) == value) {
        continue; // then it is none
      }
      config[field] = value;
      const Status status = load(config, numerics);
      EXPECT_EQ(status.code(), StatusCode::kCorruption) << field << value;
      EXPECT_EQ(status.message().find("/tiny"), 0u) << status.message();
      EXPECT_EQ(status.message().find('\n'), std::string::npos);
    }
  }
}

} // namespace
} // namespace ingle
