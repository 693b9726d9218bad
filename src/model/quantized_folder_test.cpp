// Folders that quantize_folder() made: as mlx-lm's convert makes them, and as
// models.
#include "import/quantize_folder.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/load_model.h"
#include "model/model.h"
#include "model/testing/golden_models.h"
#include "model/testing/tiny_model.h"
#include "text/testing/tiny_tokenizer.h"
#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

const std::vector<Json>& cases() {
  static const auto* all = new std::vector<Json>(golden_cases("quantize.json"));
  return *all;
}

uint64_t fnv1a(ByteView bytes, uint64_t hash) {
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

std::string digest(const std::string& name, const TensorView& tensor) {
  const uint64_t hash =
      fnv1a(tensor.bytes, fnv1a(as_bytes(name), 0xcbf29ce484222325));
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, hash);
  return text;
}

// The plain model of a case, with a tokenizer, in `folder`.
void write_source(
    FileSystem& fs,
    const std::string& folder,
    const Json& of,
    TensorType floats = TensorType::kF32) {
  TinyModel tiny = tiny_model_of(of, of["config"]);
  tiny.floats = floats;
  ASSERT_TRUE(write_tiny_model(fs, folder, tiny).is_ok());
  ASSERT_TRUE(write_file(
                  fs,
                  join_path(folder, "tokenizer.json"),
                  as_bytes(tiny_tokenizer_json({})))
                  .is_ok());
}

QuantizeOptions options_of(const Json& golden) {
  QuantizeOptions options{
      .spec = {golden["bits"].get<int>(), golden["group_size"].get<int>()}};
  const auto config =
      parse_model_config(golden["config"].dump(), "config.json");
  EXPECT_TRUE(config.is_ok()) << config.status().message();
  options.wide_modules = config->wide_modules;
  options.stacked_experts = config->experts.stacked;
  return options;
}

class QuantizedFolderTest : public testing::TestWithParam<size_t> {
 protected:
  const Json& golden() const {
    return cases()[GetParam()];
  }
  const std::unique_ptr<FileSystem> fs = make_memory_file_system();
};

std::string name_of(const testing::TestParamInfo<size_t>& each) {
  return cases()[each.param]["name"].get<std::string>();
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    QuantizedFolderTest,
    testing::Range(size_t{0}, cases().size()),
    name_of);

// Those whose weights are published in 16 bits.
std::vector<size_t> narrow_cases() {
  std::vector<size_t> narrow;
  for (size_t i = 0; i < cases().size(); ++i) {
    const Json type = cases()[i]["config"].value("torch_dtype", Json());
    if (type == "bfloat16" || type == "float16") {
      narrow.push_back(i);
    }
  }
  return narrow;
}

class NarrowFolderTest : public QuantizedFolderTest {};

INSTANTIATE_TEST_SUITE_P(
    Cases,
    NarrowFolderTest,
    testing::ValuesIn(narrow_cases()),
    name_of);

TEST_P(QuantizedFolderTest, IsToTheBitWhatMlxLmConverts) {
  write_source(*fs, "/source", golden());
  const auto report =
      quantize_folder(*fs, "/source", "/out", options_of(golden()));
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  const auto weights = WeightFolder::open(*fs, "/out");
  ASSERT_TRUE(weights.is_ok()) << weights.status().message();
  Json digests = Json::object();
  for (const auto& [name, tensor] : (*weights)->tensors()) {
    digests[name] = digest(name, tensor);
  }
  EXPECT_EQ(digests, golden()["digests"]);

  Json config = Json::parse(*fs->read("/out/config.json"));
  EXPECT_EQ(config["quantization"], config["quantization_config"]);
  for (auto& [path, value] : config["quantization"].items()) {
    if (value.is_object()) {
      value.erase("mode"); // which mlx-lm leaves out there
    }
  }
  EXPECT_EQ(config["quantization"], golden()["quantization"]);
}

TEST_P(NarrowFolderTest, IsTheSameFromWeightsOfItsType) {
  const TensorType stored = golden()["config"]["torch_dtype"] == "float16"
      ? TensorType::kF16
      : TensorType::kBF16;
  const auto options = options_of(golden());
  write_source(*fs, "/source", golden());
  ASSERT_TRUE(quantize_folder(*fs, "/source", "/out", options).is_ok());
  write_source(*fs, "/narrow", golden(), stored);
  ASSERT_TRUE(quantize_folder(*fs, "/narrow", "/same", options).is_ok());
  EXPECT_EQ(
      *fs->read("/same/model.safetensors"),
      *fs->read("/out/model.safetensors"));
}

// Of the logits of the models in two folders, after a few tokens; 1: they point
// the same way.
double cosine_of_logits(FileSystem& fs, const char* one, const char* other) {
  std::vector<std::vector<float>> logits;
  for (const char* folder : {one, other}) {
    const auto model =
        load_model(fs, folder, {.numerics = Numerics::kNear, .threads = 2});
    EXPECT_TRUE(model.is_ok()) << model.status().message();
    if (!model.is_ok()) {
      return 0;
    }
    KvState kv = (*model)->make_kv();
    logits.push_back(step(**model, kv, std::vector<TokenId>{5, 80, 7, 200}));
  }
  const auto product = [](const auto& x, const auto& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  return product(logits[0], logits[1]) /
      std::sqrt(product(logits[0], logits[0]) * product(logits[1], logits[1]));
}

TEST_P(QuantizedFolderTest, LoadsAndIsNearThePlainModel) {
  write_source(*fs, "/source", golden());
  ASSERT_TRUE(
      quantize_folder(*fs, "/source", "/out", options_of(golden())).is_ok());
  const int bits = golden()["bits"].get<int>();
  EXPECT_GT(cosine_of_logits(*fs, "/source", "/out"), bits < 4 ? 0.3 : 0.8);
}

// As they were published: experts in two tensors, beside parts that see. Of the
// last the rows of what comes after the gates are no whole groups.
TEST(QuantizedFolder, ExpertsThatWerePublishedTogetherLoad) {
  struct Case {
    const char* file;
    const char* name;
    int group_size;
    size_t quantized; // of three in each layer
  };
  for (const auto& [file, name, group_size, quantized] : std::vector<Case>{
           {"tiny_moe.json", "qwen3_5_moe_as_published", 32, 12},
           {"tiny_gemma4.json", "gemma4_26b", 32, 9},
           {"tiny_gemma4.json", "gemma4_26b", 64, 6}}) {
    SCOPED_TRACE(testing::Message() << name << ", " << group_size);
    Json golden = golden_case_in(file, name);
    golden["bits"] = 8;
    golden["group_size"] = group_size;
    const auto fs = make_memory_file_system();
    write_source(*fs, "/source", golden);
    ASSERT_TRUE(
        quantize_folder(*fs, "/source", "/out", options_of(golden)).is_ok());
    const auto weights = WeightFolder::open(*fs, "/out");
    ASSERT_TRUE(weights.is_ok());
    size_t experts = 0;
    for (const auto& [tensor, view] : (*weights)->tensors()) {
      experts += tensor.find("_proj.scales") != std::string::npos &&
          view.shape.size() == 3;
      EXPECT_EQ(tensor.find("gate_up_proj"), std::string::npos) << tensor;
      EXPECT_FALSE(tensor.ends_with("experts.down_proj")) << tensor;
    }
    EXPECT_EQ(experts, quantized);
    EXPECT_GT(cosine_of_logits(*fs, "/source", "/out"), 0.95);
  }
}

} // namespace
} // namespace ingle
