// What the decoder takes from files that are not as their config says. What it
// computes: model_test.cpp.
#include "model/families/decoder.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/load_model.h"
#include "model/model.h"
#include "model/testing/golden_models.h"

namespace ingle {
namespace {

const std::vector<Json>& family_cases() {
  static const auto* cases =
      new std::vector<Json>(golden_cases("tiny_families.json"));
  return *cases;
}

class DecoderTest : public testing::TestWithParam<size_t> {
 protected:
  const Json& golden() const {
    return family_cases()[GetParam()];
  }

  // The golden's weights with another config.
  Result<std::unique_ptr<const Model>> load(
      const Json& config,
      Numerics numerics,
      TensorType floats = TensorType::kF32) {
    TinyModel tiny = tiny_model_of(golden(), config);
    tiny.floats = floats;
    const auto fs = make_memory_file_system();
    EXPECT_TRUE(write_tiny_model(*fs, "/tiny", tiny).is_ok());
    return load_model(*fs, "/tiny", {.numerics = numerics, .threads = 1});
  }
  // After a short prompt.
  static std::vector<float> logits_of(const Model& model) {
    KvState kv = model.make_kv();
    return step(model, kv, std::vector<TokenId>{5, 80, 7, 200});
  }
};

// 1: they point the same way.
double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  const auto product = [](const auto& x, const auto& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  return product(a, b) / std::sqrt(product(a, a) * product(b, b));
}

std::vector<size_t> all_cases() {
  std::vector<size_t> cases(family_cases().size());
  std::iota(cases.begin(), cases.end(), size_t{0});
  return cases;
}

std::vector<size_t> plain_cases() {
  std::vector<size_t> cases = all_cases();
  std::erase_if(cases, [](size_t i) {
    return family_cases()[i]["config"].contains("quantization");
  });
  return cases;
}

std::string name_of(const testing::TestParamInfo<size_t>& each) {
  return family_cases()[each.param]["name"].get<std::string>();
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    DecoderTest,
    testing::ValuesIn(all_cases()),
    name_of);

class PlainDecoderTest : public DecoderTest {};

INSTANTIATE_TEST_SUITE_P(
    Families,
    PlainDecoderTest,
    testing::ValuesIn(plain_cases()),
    name_of);

// As their authors publish them.
TEST_P(PlainDecoderTest, WeightsOfSixteenBitsLoad) {
  const Json& config = golden()["config"];
  const auto exact = load(config, Numerics::kExact);
  ASSERT_TRUE(exact.is_ok()) << exact.status().message();
  const auto expected = logits_of(**exact);
  for (const TensorType type : {TensorType::kF16, TensorType::kBF16}) {
    std::vector<std::vector<float>> found;
    for (const Numerics numerics : {Numerics::kExact, Numerics::kNear}) {
      const auto model = load(config, numerics, type);
      ASSERT_TRUE(model.is_ok()) << model.status().message();
      found.push_back(logits_of(**model));
    }
    EXPECT_GT(
        cosine(found[0], expected), type == TensorType::kF16 ? 0.99 : 0.9);
    EXPECT_GT(cosine(found[1], found[0]), 0.9999); // the same weights
  }
}

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
      Json& text =
          config.contains("text_config") ? config["text_config"] : config;
      if (text.value(field, 0) == value) {
        continue; // then it is none
      }
      text[field] = value;
      const Status status = load(config, numerics).status();
      EXPECT_EQ(status.code(), StatusCode::kCorruption) << field << value;
      EXPECT_EQ(status.message().find("/tiny"), 0u) << status.message();
      EXPECT_EQ(status.message().find('\n'), std::string::npos);
    }
  }
}

} // namespace
} // namespace ingle
