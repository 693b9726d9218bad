#include "hub/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

using testing::ElementsAre;

TEST(ModelFiles, OnlyWhatAModelNeedsIsTaken) {
  EXPECT_THAT(
      text_files_of(
          {"README.md",
           "config.json",
           "consolidated.safetensors",
           "kv_config.json",
           "onnx/model.onnx",
           "pytorch_model.bin",
           "sub/config.json",
           "tokenizer.json",
           "../config.json"}),
      ElementsAre("config.json", "kv_config.json", "tokenizer.json"));
}

TEST(ModelFiles, ShardsAreThoseThatTheIndexNames) {
  const auto shards = shards_of_index(
      R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors",
          "c": "2.safetensors"}})",
      "index");
  ASSERT_TRUE(shards.is_ok());
  EXPECT_THAT(*shards, ElementsAre("1.safetensors", "2.safetensors"));
}

TEST(ModelFiles, HostileIndexIsRefused) {
  for (const char* json :
       {"",
        "[]",
        "{}",
        R"({"weight_map": {}})",
        R"({"weight_map": []})",
        R"({"weight_map": {"a": 1}})",
        R"({"weight_map": {"a": "config.json"}})",
        R"({"weight_map": {"a": "../1.safetensors"}})",
        R"({"weight_map": {"a": "/tmp/1.safetensors"}})",
        R"({"weight_map": {"a": "x/../../1.safetensors"}})"}) {
    EXPECT_EQ(
        shards_of_index(json, "index").status().code(), StatusCode::kCorruption)
        << json;
  }
}

} // namespace
} // namespace ingle
