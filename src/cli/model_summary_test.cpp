#include "cli/model_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/testing/fake_hub.h"

namespace ingle {
namespace {

using testing::HasSubstr;

constexpr const char* kFolder = "/m";

class ModelSummaryTest : public testing::Test {
 protected:
  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(fs_->create_directory(kFolder).is_ok());
    ASSERT_TRUE(
        write_file(*fs_, join_path(kFolder, name), as_bytes(text)).is_ok());
  }
  // config.json of a small model, with more fields.
  void write_config(const std::string& type, const std::string& more = {}) {
    write(
        "config.json",
        "{\"model_type\": \"" + type + "\"" + R"(,
        "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "head_dim": 4, "vocab_size": 8,
        "max_position_embeddings": 16, "rms_norm_eps": 1e-5)" +
            more + "}");
  }
  ModelSummary summary() {
    return summarize_model(*fs_, kFolder);
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

TEST_F(ModelSummaryTest, SaysWhatTheModelIs) {
  write_config("llama", R"(, "quantization": {"bits": 4, "group_size": 32})");
  write("model.safetensors", tiny_safetensors());
  const ModelSummary found = summary();
  EXPECT_EQ(found.family, "llama");
  EXPECT_EQ(found.tier, "generic");
  EXPECT_EQ(found.quantization, "4-bit");
  EXPECT_EQ(found.context, 16);
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(
      found.bytes,
      tiny_safetensors().size() + fs_->stat("/m/config.json")->size);
}

TEST_F(ModelSummaryTest, FamilyThatIngleIsMadeForIsTargeted) {
  write_config("qwen3");
  write("model.safetensors", tiny_safetensors());
  EXPECT_EQ(summary().tier, "targeted");
  EXPECT_EQ(summary().quantization, "dense");
}

TEST_F(ModelSummaryTest, MixedQuantizationSaysSo) {
  write_config(
      "llama",
      R"(, "quantization": {"bits": 4, "group_size": 32,
           "lm_head": {"bits": 8, "group_size": 32}})");
  EXPECT_EQ(summary().quantization, "4-bit and others");
}

TEST_F(ModelSummaryTest, FamilyThatIsNotRunIsNamedAllTheSame) {
  write_config("perceptron");
  write("model.safetensors", tiny_safetensors());
  const ModelSummary found = summary();
  EXPECT_EQ(found.family, "perceptron");
  EXPECT_EQ(found.tier, "none");
  EXPECT_THAT(found.problem, HasSubstr("is not supported"));
}

TEST_F(ModelSummaryTest, WeightsThatAreNotThereAreTheProblem) {
  write_config("llama");
  EXPECT_EQ(summary().tier, "none");
  EXPECT_THAT(summary().problem, HasSubstr("model.safetensors"));
  write("model.safetensors", tiny_safetensors().substr(0, 100));
  EXPECT_EQ(summary().tier, "none");
  EXPECT_EQ(summary().context, 16);
}

TEST_F(ModelSummaryTest, FolderWithoutAConfigIsNoModel) {
  EXPECT_EQ(summary().tier, "none");
  EXPECT_THAT(summary().problem, HasSubstr("/m/config.json"));
}

} // namespace
} // namespace ingle
