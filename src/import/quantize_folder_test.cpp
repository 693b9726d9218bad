#include "import/quantize_folder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file_system_faulty.h"
#include "text/testing/tiny_tokenizer.h"
#include "weights/safetensors_reader.h"
#include "weights/safetensors_writer.h"

namespace ingle {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

struct Given {
  TensorSpec spec;
  std::vector<float> values;
};

Given given(const std::string& name, std::vector<int64_t> shape) {
  size_t count = 1;
  for (const int64_t extent : shape) {
    count *= static_cast<size_t>(extent);
  }
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 7 % 61) - 30) / 16;
  }
  return {{name, TensorType::kF32, std::move(shape)}, std::move(values)};
}

// Three experts, as they were published and as MLX has them.
struct Experts {
  Experts(int64_t hidden, int64_t inner) {
    const std::string path = "model.layers.0.mlp.";
    const Given both =
        given(path + "experts.gate_up_proj", {3, 2 * inner, hidden});
    Given down = given(path + "experts.down_proj", {3, hidden, inner});
    const Given norm = given("model.norm.weight", {64});
    together = {both, down, norm};
    Given gate =
        given(path + "switch_mlp.gate_proj.weight", {3, inner, hidden});
    Given up = given(path + "switch_mlp.up_proj.weight", {3, inner, hidden});
    const auto half = static_cast<ptrdiff_t>(inner * hidden);
    for (ptrdiff_t i = 0; i < 3; ++i) {
      const auto from = both.values.begin() + 2 * i * half;
      std::copy_n(from, half, gate.values.begin() + i * half);
      std::copy_n(from + half, half, up.values.begin() + i * half);
    }
    down.spec.name = path + "switch_mlp.down_proj.weight";
    apart = {gate, up, down, norm};
  }
  std::vector<Given> together;
  std::vector<Given> apart;
};

class QuantizeFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs_->create_directory("/in").is_ok());
    write("config.json", R"({"model_type": "any", "hidden_size": 64})");
    write("tokenizer.json", tiny_tokenizer_json({}));
    write("generation_config.json", R"({"eos_token_id": 258})");
    write("README.md", "not copied");
    write_weights();
  }

  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(*fs_, "/in/" + name, as_bytes(text)).is_ok());
  }
  void write_weights() {
    std::vector<TensorSpec> specs;
    for (const Given& each : tensors_) {
      specs.push_back(each.spec);
    }
    auto writer = SafetensorsWriter::create(
        *fs_, "/in/model.safetensors", std::move(specs));
    ASSERT_TRUE(writer.is_ok()) << writer.status().message();
    for (const Given& each : tensors_) {
      ASSERT_TRUE(
          (*writer)
              ->append(each.spec.name, std::as_bytes(std::span(each.values)))
              .is_ok());
    }
    ASSERT_TRUE((*writer)->finish().is_ok());
  }
  Result<QuantizeReport> quantize(const QuantizeOptions& options = {}) {
    return quantize_folder(*fs_, "/in", "/out/model", options);
  }
  // The failure's message; nothing may be left.
  std::string problem() {
    const auto report = quantize();
    EXPECT_FALSE(report.is_ok());
    EXPECT_EQ(report.status().message().find('\n'), std::string::npos);
    const auto names = fs_->list("/out");
    EXPECT_TRUE(!names.is_ok() || names->empty());
    return report.status().message();
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  std::vector<Given> tensors_ = {
      given("model.embed_tokens.weight", {10, 128}),
      given("model.layers.0.mlp.down_proj.weight", {6, 64}),
      given("model.layers.0.mlp.odd_proj.weight", {6, 48}),
      given("model.layers.0.self_attn.rotary_emb.inv_freq", {8}),
      given("model.norm.weight", {64}),
      given("lm_head.weight", {10, 128})};
};

TEST_F(QuantizeFolderTest, MatricesOfWholeGroupsAreQuantisedAndTheRestStays) {
  const auto report = quantize({.dropped = {"lm_head.weight"}});
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(report->folder, "/out/model");
  const auto folder = WeightFolder::open(*fs_, "/out/model");
  ASSERT_TRUE(folder.is_ok()) << folder.status().message();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : (*folder)->tensors()) {
    names.push_back(name);
  }
  EXPECT_THAT(
      names,
      testing::ElementsAre(
          "model.embed_tokens.biases",
          "model.embed_tokens.scales",
          "model.embed_tokens.weight",
          "model.layers.0.mlp.down_proj.biases",
          "model.layers.0.mlp.down_proj.scales",
          "model.layers.0.mlp.down_proj.weight",
          "model.layers.0.mlp.odd_proj.weight",
          "model.norm.weight"));
  const auto& tensors = (*folder)->tensors();
  EXPECT_THAT(
      tensors.at("model.embed_tokens.weight").shape,
      testing::ElementsAre(10, 16));
  EXPECT_THAT(
      tensors.at("model.embed_tokens.scales").shape,
      testing::ElementsAre(10, 2));
  EXPECT_EQ(
      std::memcmp(
          tensors.at("model.norm.weight").bytes.data(),
          tensors_[4].values.data(),
          64 * sizeof(float)),
      0);

  ASSERT_EQ(report->totals.size(), 2u);
  EXPECT_EQ(report->totals[0].stored_as, "4 bits, groups of 64, F32 scales");
  EXPECT_EQ(report->totals[0].tensors, 2u);
  EXPECT_EQ(report->totals[0].bytes, 4u * (10 * 128 + 6 * 64));
  EXPECT_EQ(report->totals[0].stored_bytes, (10 * 128 + 6 * 64) / 2u + 8 * 26);
  EXPECT_EQ(report->totals[1].stored_as, "F32");
}

// As if each of the three were a tensor of its own, also where the rows of some
// are not whole groups: those stay plain, and the others do not.
TEST_F(QuantizeFolderTest, ExpertsInTwoTensorsBecomeThoseOfMlx) {
  struct Case {
    int64_t hidden;
    int64_t inner;
    size_t tensors; // that are made of the three, and a norm
  };
  for (const auto& [hidden, inner, tensors] : std::vector<Case>{
           {64, 128, 10}, {64, 96, 8}, {96, 64, 6}, {96, 96, 4}, {64, 3, 8}}) {
    SCOPED_TRACE(testing::Message() << hidden << ", " << inner);
    const Experts experts(hidden, inner);
    tensors_ = experts.together;
    write_weights();
    const std::string out =
        "/out/" + std::to_string(hidden) + "x" + std::to_string(inner);
    ASSERT_TRUE(quantize_folder(*fs_, "/in", out, {}).is_ok());
    tensors_ = experts.apart;
    write_weights();
    ASSERT_TRUE(quantize_folder(*fs_, "/in", out + "-apart", {}).is_ok());
    const auto fused = WeightFolder::open(*fs_, out);
    const auto apart = WeightFolder::open(*fs_, out + "-apart");
    ASSERT_TRUE(fused.is_ok() && apart.is_ok());
    ASSERT_EQ((*fused)->tensors().size(), tensors);
    for (const auto& [name, tensor] : (*apart)->tensors()) {
      const auto own = (*fused)->tensors().find(name);
      ASSERT_NE(own, (*fused)->tensors().end()) << name;
      EXPECT_EQ(own->second.shape, tensor.shape) << name;
      EXPECT_TRUE(std::ranges::equal(own->second.bytes, tensor.bytes)) << name;
    }
  }
}

TEST_F(QuantizeFolderTest, ConfigSaysHowAndTheOtherFilesAreCopied) {
  ASSERT_TRUE(
      quantize({.spec = {3, 32}, .wide_modules = {"down_proj"}}).is_ok());
  const Json config = Json::parse(*fs_->read("/out/model/config.json"));
  EXPECT_EQ(config["hidden_size"], 64);
  EXPECT_EQ(config["quantization"]["bits"], 3);
  EXPECT_EQ(config["quantization"]["group_size"], 32);
  EXPECT_EQ(
      config["quantization"]["model.layers.0.mlp.down_proj"],
      (Json{{"bits", 8}, {"group_size", 64}, {"mode", "affine"}}));
  EXPECT_EQ(config["quantization_config"], config["quantization"]);
  EXPECT_THAT(
      *fs_->list("/out/model"),
      testing::ElementsAre(
          "config.json",
          "generation_config.json",
          "model.safetensors",
          "tokenizer.json"));
}

TEST_F(QuantizeFolderTest, WhatAModelIsServedWithIsCopied) {
  const std::vector<std::string> names = {
      "chat_template.jinja",
      "chat_template.json",
      "generation_config.json",
      "kv_config.json",
      "special_tokens_map.json",
      "tokenizer_config.json"};
  for (const std::string& name : names) {
    write(name, "any " + name);
  }
  ASSERT_TRUE(quantize().is_ok());
  for (const std::string& name : names) {
    const auto text = fs_->read("/out/model/" + name);
    ASSERT_TRUE(text.is_ok()) << name;
    EXPECT_EQ(*text, "any " + name);
  }
}

// Where mlx-lm's convert looks for it, in its order.
TEST_F(QuantizeFolderTest, WeightsGetTheTypeThatTheConfigSays) {
  const std::string layer = "model.layers.0.linear_attn.";
  tensors_.push_back(given(layer + "A_log", {4}));
  write_weights();
  const std::pair<const char*, TensorType> cases[] = {
      {R"({})", TensorType::kF32},
      {R"({"torch_dtype": "bfloat16"})", TensorType::kBF16},
      {R"({"text_config": {"dtype": "float16"}})", TensorType::kF16},
      {R"({"torch_dtype": null, "text_config": {"dtype": "bfloat16"}})",
       TensorType::kBF16},
      {R"({"torch_dtype": "float16", "text_config": {"dtype": "bfloat16"}})",
       TensorType::kF16},
      {R"({"torch_dtype": "int8", "text_config": {"dtype": "bfloat16"}})",
       TensorType::kF32},
      {R"({"text_config": "bfloat16"})", TensorType::kF32},
      {R"({"dtype": "bfloat16"})", TensorType::kF32}};
  int n = 0;
  for (const auto& [config, type] : cases) {
    SCOPED_TRACE(config);
    write("config.json", config);
    const std::string out = "/out/" + std::to_string(n++);
    ASSERT_TRUE(quantize_folder(*fs_, "/in", out, {}).is_ok());
    const auto folder = WeightFolder::open(*fs_, out);
    ASSERT_TRUE(folder.is_ok()) << folder.status().message();
    const auto& tensors = (*folder)->tensors();
    EXPECT_EQ(tensors.at("model.norm.weight").type, type);
    EXPECT_EQ(tensors.at("model.embed_tokens.scales").type, type);
    EXPECT_EQ(tensors.at(layer + "A_log").type, TensorType::kF32);
  }
}

TEST_F(QuantizeFolderTest, ProgressEndsWithAllBytes) {
  uint64_t last = 0;
  uint64_t all = 0;
  ASSERT_TRUE(quantize_folder(
                  *fs_,
                  "/in",
                  "/out/model",
                  {},
                  [&](uint64_t done, uint64_t total) {
                    EXPECT_GT(done, last);
                    last = done;
                    all = total;
                  })
                  .is_ok());
  EXPECT_GT(all, 0u);
  EXPECT_EQ(last, all);
}

TEST_F(QuantizeFolderTest, WeightsThatCannotBeQuantisedAreRefused) {
  tensors_[1].values[70] = std::numeric_limits<float>::quiet_NaN();
  write_weights();
  EXPECT_THAT(problem(), HasSubstr("'model.layers.0.mlp.down_proj.weight'"));
  tensors_[1] = given("model.layers.0.mlp.down_proj.weight", {6, 64});
  tensors_[1].spec.type = TensorType::kU32;
  write_weights();
  EXPECT_THAT(problem(), HasSubstr("is of type U32"));
  tensors_[1].spec.type = TensorType::kF32;
  write_weights();
  for (const char* key : {"quantization", "quantization_config"}) {
    write(
        "config.json",
        std::string("{\"") + key + "\": {\"quant_method\": \"fp8\"}}");
    EXPECT_THAT(problem(), HasSubstr("quantised already"));
  }
  write("config.json", "[]");
  EXPECT_THAT(problem(), HasSubstr("/in/config.json"));
}

TEST_F(QuantizeFolderTest, FolderWithoutATokenizerThatLoadsIsRefused) {
  write("tokenizer.json", "{}");
  EXPECT_THAT(problem(), HasSubstr("/in/tokenizer.json"));
  ASSERT_TRUE(fs_->remove("/in/tokenizer.json").is_ok());
  EXPECT_THAT(problem(), HasSubstr("tokenizer.json"));
  write("tokenizer.json", tiny_tokenizer_json({}));
  EXPECT_TRUE(quantize().is_ok());
}

TEST_F(QuantizeFolderTest, ExistingFolderIsNotTouched) {
  ASSERT_TRUE(fs_->create_directory("/out/model").is_ok());
  ASSERT_TRUE(write_file(*fs_, "/out/model/mine", as_bytes("kept")).is_ok());
  EXPECT_EQ(quantize().status().code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(*fs_->read("/out/model/mine"), "kept");
}

TEST_F(QuantizeFolderTest, EveryFailedCallLeavesNothing) {
  for (uint64_t n = 1;; ++n) {
    FaultyFileSystem faulty(*fs_, n, StatusCode::kNoSpace);
    const auto report = quantize_folder(faulty, "/in", "/out/model", {});
    if (faulty.calls() < n) {
      EXPECT_TRUE(report.is_ok());
      EXPECT_GT(n, 10u);
      return;
    }
    ASSERT_FALSE(report.is_ok()) << n;
    const auto names = fs_->list("/out");
    ASSERT_TRUE(!names.is_ok() || names->empty()) << n;
  }
}

} // namespace
} // namespace ingle
