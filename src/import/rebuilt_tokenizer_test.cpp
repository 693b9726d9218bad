// The rebuilt tokenizer.json in the library that servers load it with.
#include <cstdio>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "import/pre_tokenizers.h"
#include "import/testing/gguf_builder.h"
#include "import/tokenizer_rebuild.h"
#include "text/testing/tiny_tokenizer.h"
#include "text/tokenizer.h"

namespace ingle {
namespace {

using Ids = std::vector<TokenId>;
using Strings = std::vector<std::string>;

std::shared_ptr<const Tokenizer> load(const GgufBuilder& builder) {
  const std::string bytes = builder.build();
  const auto file = GgufFile::parse(as_bytes(bytes), "m.gguf");
  EXPECT_TRUE(file.is_ok());
  const auto rebuilt = rebuild_tokenizer(*file);
  EXPECT_TRUE(rebuilt.is_ok()) << rebuilt.status().message();
  const auto loaded = Tokenizer::from_json(rebuilt->tokenizer_json, "m.gguf");
  EXPECT_TRUE(loaded.is_ok()) << loaded.status().message();
  return loaded.value();
}

std::string round_trip(const Tokenizer& tokenizer, std::string_view text) {
  return *tokenizer.decode(*tokenizer.encode(text, true), true);
}

constexpr TokenId kEnd = 256; // "<|end|>", bos and eos
constexpr TokenId kSpaceA = 257; // " a", merged
constexpr TokenId kTwelve = 258; // "12", merged
constexpr TokenId kXyz = 259; // "xyz", which no merges lead to

// Byte b is token b.
GgufBuilder byte_level(const std::string& pre) {
  Strings tokens(256);
  const auto bytes = nlohmann::json::parse(tiny_tokenizer_json());
  for (const auto& [text, id] : bytes["model"]["vocab"].items()) {
    if (id < 256) {
      tokens[id.get<size_t>()] = text;
    }
  }
  const std::string space = tokens[' '];
  tokens.insert(tokens.end(), {"<|end|>", space + "a", "12", "xyz"});
  std::vector<int32_t> kinds(tokens.size(), 1);
  kinds[kEnd] = 3;
  GgufBuilder builder = tiny_llama(GgmlType::kF32, 32);
  builder.set("tokenizer.ggml.pre", pre.c_str());
  builder.set("tokenizer.ggml.tokens", tokens);
  builder.set("tokenizer.ggml.token_type", kinds);
  builder.set("tokenizer.ggml.merges", Strings{space + " a", "1 2"});
  builder.set("tokenizer.ggml.bos_token_id", 256u);
  builder.set("tokenizer.ggml.eos_token_id", 256u);
  return builder;
}

struct Cutting {
  bool splits_digits = false;
  bool takes_whole_words = false; // and adds bos: Llama 3
  bool composes = false;
};

const std::map<std::string, Cutting>& cuttings() {
  static const std::map<std::string, Cutting> kAll = {
      {"default", {}},
      {"gpt-2", {}},
      {"mpt", {}},
      {"olmo", {}},
      {"smollm", {true, false, false}},
      {"starcoder", {true, false, false}},
      {"refact", {true, false, false}},
      {"command-r", {true, false, false}},
      {"codeshell", {true, false, false}},
      {"llama-bpe", {false, true, false}},
      {"llama3", {false, true, false}},
      {"llama-v3", {false, true, false}},
      {"qwen2", {true, false, true}}};
  return kAll;
}

TEST(RebuiltTokenizer, ByteLevelEncodesAsItsNameSays) {
  for (const auto& [pre, cutting] : cuttings()) {
    SCOPED_TRACE(pre);
    const auto tokenizer = load(byte_level(pre));
    EXPECT_EQ(tokenizer->vocab_size(), 260);
    EXPECT_EQ(*tokenizer->encode(" a", false), Ids{kSpaceA});
    EXPECT_EQ(
        *tokenizer->encode("12", false),
        cutting.splits_digits ? (Ids{'1', '2'}) : Ids{kTwelve});
    EXPECT_EQ(
        *tokenizer->encode("xyz", false),
        cutting.takes_whole_words ? Ids{kXyz} : (Ids{'x', 'y', 'z'}));
    EXPECT_EQ(
        *tokenizer->encode("e\xcc\x81", false),
        cutting.composes ? (Ids{0xc3, 0xa9}) : (Ids{'e', 0xcc, 0x81}));
    EXPECT_EQ(
        *tokenizer->encode("b<|end|>", true),
        cutting.takes_whole_words ? (Ids{kEnd, 'b', kEnd}) : (Ids{'b', kEnd}));
    for (const char* text :
         {"It's 1234.5\n\n  done!  ",
          "\xe4\xbd\xa0\xf0\x9f\x99\x82",
          "\t\r\n"}) {
      EXPECT_EQ(round_trip(*tokenizer, text), text);
    }
  }
}

TEST(RebuiltTokenizer, EveryPreTokenizerIsTested) {
  std::string names;
  for (const auto& [pre, cutting] : cuttings()) {
    EXPECT_NE(find_pre_tokenizer(pre), nullptr);
    names += (names.empty() ? "" : ", ") + pre;
  }
  EXPECT_EQ(names.size(), known_pre_tokenizers().size());
}

constexpr TokenId kFirstByte = 3;

// After the bytes: "\u2581" 259, "a" 260, "b" 261, "ab" 262, "\u2581a" 263,
// "\u2581ab" 264.
GgufBuilder sentence_piece() {
  Strings tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> kinds = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.emplace_back(text);
    kinds.push_back(6);
  }
  std::vector<float> scores(tokens.size(), 0);
  const std::string space = "\xe2\x96\x81";
  tokens.insert(
      tokens.end(), {space, "a", "b", "ab", space + "a", space + "ab"});
  kinds.resize(tokens.size(), 1);
  scores.insert(scores.end(), {-9, -8, -7, -2, -1, -3});
  GgufBuilder builder = tiny_llama(GgmlType::kF32, 32);
  builder.erase("tokenizer.ggml.merges");
  builder.erase("tokenizer.ggml.pre");
  builder.set("tokenizer.ggml.model", "llama");
  builder.set("tokenizer.ggml.tokens", tokens);
  builder.set("tokenizer.ggml.token_type", kinds);
  builder.set("tokenizer.ggml.scores", scores);
  builder.set("tokenizer.ggml.bos_token_id", 1u);
  builder.set("tokenizer.ggml.eos_token_id", 2u);
  builder.set("tokenizer.ggml.unknown_token_id", 0u);
  return builder;
}

TEST(RebuiltTokenizer, SentencePieceWithSpacePrefix) {
  const auto tokenizer = load(sentence_piece());
  EXPECT_EQ(*tokenizer->encode("ab", true), (Ids{1, 264}));
  EXPECT_EQ(*tokenizer->encode("ab ab", false), (Ids{264, 264}));
  EXPECT_EQ(*tokenizer->encode("\n", false), (Ids{259, kFirstByte + '\n'}));
  for (const char* text : {"ab", " ab", "a  b", "\xf0\x9f\x99\x82 1\n"}) {
    EXPECT_EQ(round_trip(*tokenizer, text), text);
  }
}

TEST(RebuiltTokenizer, SentencePieceWithoutSpacePrefix) {
  GgufBuilder builder = sentence_piece();
  builder.set("tokenizer.ggml.add_space_prefix", false);
  const auto tokenizer = load(builder);
  EXPECT_EQ(*tokenizer->encode("ab", true), (Ids{1, 262}));
  EXPECT_EQ(*tokenizer->encode("ab ab", false), (Ids{262, 264}));
  EXPECT_EQ(*tokenizer->encode("\n", false), (Ids{kFirstByte + '\n'}));
  for (const char* text : {"ab", " ab", "a  b", "\xf0\x9f\x99\x82 1\n"}) {
    EXPECT_EQ(round_trip(*tokenizer, text), text);
  }
}

} // namespace
} // namespace ingle
