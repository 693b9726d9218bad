#include "model/kv_config.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

class KvConfigTest : public testing::Test {
 protected:
  KvConfigTest() {
    config.num_hidden_layers = 4;
    config.head_dim = 64;
    config.layers.resize(4);
    EXPECT_TRUE(fs->create_directory("/m").is_ok());
  }
  void write(std::string_view text) {
    ASSERT_TRUE(write_file(*fs, "/m/kv_config.json", as_bytes(text)).is_ok());
  }
  Result<KvQuantizations> read(const RunOptions& options = {}) {
    return kv_quantizations(*fs, "/m", config, options);
  }

  std::unique_ptr<FileSystem> fs = make_memory_file_system();
  ModelConfig config;
};

TEST_F(KvConfigTest, WithoutAFileAllIsHeldInFull) {
  EXPECT_EQ(*read(), KvQuantizations(4));
}

// Acceptance 55: listed layers get their bits; others stay as they are.
TEST_F(KvConfigTest, kv_config_per_layer) {
  write(R"([{"layer_idx": 0, "bits": 8, "group_size": 64},
            {"layer_idx": 2, "bits": 4, "group_size": 32},
            {"layer_idx": 3, "bits": 4}])");
  const auto kv = *read();
  EXPECT_EQ(kv[0], (KvQuantization{8, 64}));
  EXPECT_EQ(kv[1], std::nullopt);
  EXPECT_EQ(kv[2], (KvQuantization{4, 32}));
  EXPECT_EQ(kv[3], (KvQuantization{4, 64}));
}

TEST_F(KvConfigTest, FlagsStandOverTheFile) {
  write(R"([{"layer_idx": 0, "bits": 8}])");
  EXPECT_EQ(*read({.kv_quant = KvQuant::kOff}), KvQuantizations(4));
  EXPECT_EQ(
      *read({.kv_quant = KvQuant::kUniform, .kv = {4, 32}}),
      KvQuantizations(4, KvQuantization{4, 32}));
}

// Acceptance 55, too.
TEST_F(KvConfigTest, RecurrentLayersAreSkipped) {
  config.layers[1].is_recurrent = true;
  write(R"([{"layer_idx": 0, "bits": 8}, {"layer_idx": 1, "bits": 8}])");
  const auto kv = *read();
  EXPECT_EQ(kv[0], (KvQuantization{8, 64}));
  EXPECT_EQ(kv[1], std::nullopt);
}

TEST_F(KvConfigTest, BadFilesAreOneLineThatSaysWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "/m/kv_config.json"},
      {"{}", "not a list of layers"},
      {"[7]", "[0]: not an object"},
      {R"([{"bits": 8}])", "[0]: layer_idx is missing"},
      {R"([{"layer_idx": 0}])", "bits"},
      {R"([{"layer_idx": 4, "bits": 8}])", "layer_idx"},
      {R"([{"layer_idx": -1, "bits": 8}])", "layer_idx"},
      {R"([{"layer_idx": "0", "bits": 8}])", "layer_idx"},
      {R"([{"layer_idx": 0, "bits": 6}])", "8 or 4 bits, not 6"},
      {R"([{"layer_idx": 0, "bits": 8, "group_size": 48}])",
       "groups of 32, 64 or 128, not of 48"},
      {R"([{"layer_idx": 1, "bits": 8}, {"layer_idx": 1, "bits": 4}])",
       "[1]: layer 1 is there twice"},
  };
  for (const auto& [text, cause] : cases) {
    write(text);
    const Status status = read().status();
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << text;
    EXPECT_NE(status.message().find("/m/kv_config.json"), std::string::npos);
    EXPECT_NE(status.message().find(cause), std::string::npos)
        << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST_F(KvConfigTest, GroupsThatDoNotFitTheHeadsAreUnsupported) {
  const Status flag =
      read({.kv_quant = KvQuant::kUniform, .kv = {8, 128}}).status();
  EXPECT_EQ(flag.code(), StatusCode::kUnsupported);
  EXPECT_EQ(
      flag.message(),
      "--kv-quant: the model's heads of 64 elements can't be held in groups of "
      "128");
  config.head_dim = 1024; // more than the kernels hold
  EXPECT_EQ(
      read({.kv_quant = KvQuant::kUniform, .kv = {8, 64}}).status().code(),
      StatusCode::kUnsupported);
}

} // namespace
} // namespace ingle
