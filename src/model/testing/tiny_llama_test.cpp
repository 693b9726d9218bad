#include "model/testing/tiny_llama.h"

#include <cinttypes>
#include <cstdio>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

uint64_t fnv1a(ByteView bytes, uint64_t hash) {
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

// As "weights" in tests/data/tiny_llama.json.
std::string digest(const WeightFolder& weights) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [name, tensor] : weights.tensors()) {
    hash = fnv1a(tensor.bytes, fnv1a(as_bytes(name), hash));
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, hash);
  return text;
}

nlohmann::json golden() {
  auto text = make_posix_file_system()->read(
      std::string(INGLE_TEST_DATA) + "/tiny_llama.json");
  EXPECT_TRUE(text.is_ok()) << text.status().message();
  return nlohmann::json::parse(text.value());
}

TEST(TinyLlama, WeightsAreThoseOfTheGolden) {
  const nlohmann::json cases = golden()["cases"];
  ASSERT_FALSE(cases.empty());
  for (const nlohmann::json& test_case : cases) {
    SCOPED_TRACE(test_case["name"]);
    const auto fs = make_memory_file_system();
    const TinyLlamaOptions options = {
        .tied = test_case["tied"], .quantised = test_case["quantised"]};
    const Status written = write_tiny_llama(*fs, "model", options);
    ASSERT_TRUE(written.is_ok()) << written.message();
    const auto weights = WeightFolder::open(*fs, "model");
    ASSERT_TRUE(weights.is_ok()) << weights.status().message();
    EXPECT_EQ(digest(**weights), test_case["weights"]);
  }
}

TEST(TinyLlama, ConfigNamesTheQuantisationOfEachModule) {
  const auto fs = make_memory_file_system();
  ASSERT_TRUE(write_tiny_llama(*fs, "model", {.quantised = true}).is_ok());
  const auto config = nlohmann::json::parse(*fs->read("model/config.json"));
  EXPECT_EQ(config["quantization"]["bits"], 4);
  EXPECT_EQ(config["quantization"]["model.embed_tokens"]["bits"], 8);
}

TEST(TinyLlama, TokenizerHasAPieceForEveryId) {
  const auto fs = make_memory_file_system();
  ASSERT_TRUE(write_tiny_llama(*fs, "model", {.tokenizer = true}).is_ok());
  const auto tokenizer =
      nlohmann::json::parse(*fs->read("model/tokenizer.json"));
  std::set<int> ids;
  for (const auto& [piece, id] : tokenizer["model"]["vocab"].items()) {
    ids.insert(id.get<int>());
  }
  for (const nlohmann::json& token : tokenizer["added_tokens"]) {
    ids.insert(token["id"].get<int>());
  }
  const auto config = nlohmann::json::parse(*fs->read("model/config.json"));
  ASSERT_EQ(ids.size(), config["vocab_size"]);
  EXPECT_EQ(*ids.begin(), 0);
  EXPECT_EQ(*ids.rbegin() + 1, config["vocab_size"]);
}

} // namespace
} // namespace ingle
