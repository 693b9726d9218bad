#include "import/tokenizer_rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "import/piece_merges.h"
#include "import/pre_tokenizers.h"
#include "import/testing/gguf_builder.h"

namespace ingle {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Rebuilt {
  Status status;
  json tokenizer;
  json config;
  RebuiltTokenizer files;
};

Rebuilt rebuild(const GgufBuilder& builder) {
  const std::string bytes = builder.build();
  const auto file = GgufFile::parse(as_bytes(bytes), "m.gguf");
  EXPECT_TRUE(file.is_ok());
  auto files = rebuild_tokenizer(*file);
  Rebuilt rebuilt;
  rebuilt.status = files.status();
  if (files.is_ok()) {
    rebuilt.files = *files;
    rebuilt.tokenizer = json::parse(files->tokenizer_json);
    rebuilt.config = json::parse(files->tokenizer_config_json);
  }
  return rebuilt;
}

std::string problem(const GgufBuilder& builder) {
  const Rebuilt rebuilt = rebuild(builder);
  EXPECT_FALSE(rebuilt.status.is_ok());
  EXPECT_TRUE(rebuilt.status.message().starts_with("m.gguf: "));
  return rebuilt.status.message();
}

GgufBuilder byte_level() {
  return tiny_llama(GgmlType::kF32, 32);
}

GgufBuilder sentence_piece() {
  GgufBuilder builder = byte_level();
  builder.erase("tokenizer.ggml.merges");
  builder.erase("tokenizer.ggml.pre");
  builder.set("tokenizer.ggml.model", "llama");
  builder.set(
      "tokenizer.ggml.tokens",
      std::vector<std::string>{
          "<unk>",
          "<s>",
          "</s>",
          "<0x0A>",
          "\xe2\x96\x81",
          "a",
          "b",
          "ab",
          "\xe2\x96\x81"
          "a",
          "\xe2\x96\x81"
          "ab",
          "<tool>"});
  builder.set(
      "tokenizer.ggml.token_type",
      std::vector<int32_t>{2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 4});
  builder.set(
      "tokenizer.ggml.scores",
      std::vector<float>{0, 0, 0, 0, -9, -8, -7, -2, -1, -3, 0});
  builder.set("tokenizer.ggml.bos_token_id", 1u);
  builder.set("tokenizer.ggml.eos_token_id", 2u);
  builder.set("tokenizer.ggml.unknown_token_id", 0u);
  return builder;
}

TEST(TokenizerRebuild, ByteLevel) {
  const Rebuilt rebuilt = rebuild(byte_level());
  ASSERT_TRUE(rebuilt.status.is_ok()) << rebuilt.status.message();
  const json& tokenizer = rebuilt.tokenizer;
  EXPECT_EQ(tokenizer["model"]["vocab"]["ab"], 3);
  EXPECT_EQ(tokenizer["model"]["merges"], json::parse(R"([["a","b"]])"));
  EXPECT_EQ(tokenizer["model"]["byte_fallback"], false);
  EXPECT_EQ(tokenizer["normalizer"], nullptr);
  EXPECT_EQ(tokenizer["post_processor"], nullptr);
  EXPECT_EQ(tokenizer["decoder"]["type"], "ByteLevel");
  EXPECT_EQ(
      tokenizer["pre_tokenizer"]["pretokenizers"][0],
      json::parse(R"({"type":"Digits","individual_digits":true})"));
  EXPECT_EQ(tokenizer["added_tokens"].size(), 1u);
  EXPECT_EQ(tokenizer["added_tokens"][0]["content"], "<|end|>");
  EXPECT_EQ(tokenizer["added_tokens"][0]["special"], true);
  EXPECT_EQ(rebuilt.config["bos_token"], "<|end|>");
  EXPECT_EQ(rebuilt.config["unk_token"], nullptr);
  EXPECT_EQ(rebuilt.config["add_bos_token"], false);
  EXPECT_EQ(rebuilt.config["model_max_length"], 128);
  EXPECT_FALSE(rebuilt.config.contains("chat_template"));
  EXPECT_EQ(rebuilt.files.chat_template, "{{ messages }}");
}

TEST(TokenizerRebuild, SentencePiece) {
  const Rebuilt rebuilt = rebuild(sentence_piece());
  ASSERT_TRUE(rebuilt.status.is_ok()) << rebuilt.status.message();
  const json& tokenizer = rebuilt.tokenizer;
  EXPECT_EQ(
      tokenizer["model"]["merges"],
      json::parse(R"([["▁","a"],["a","b"],["▁a","b"],["▁","ab"]])"));
  EXPECT_EQ(tokenizer["model"]["byte_fallback"], true);
  EXPECT_EQ(tokenizer["model"]["unk_token"], "<unk>");
  EXPECT_EQ(tokenizer["normalizer"]["normalizers"][0]["type"], "Prepend");
  EXPECT_EQ(tokenizer["decoder"]["decoders"].size(), 4u);
  EXPECT_EQ(
      tokenizer["post_processor"]["special_tokens"]["<s>"]["ids"],
      json::parse("[1]"));
  EXPECT_EQ(tokenizer["post_processor"]["single"].size(), 2u);
  EXPECT_EQ(tokenizer["post_processor"]["pair"].size(), 4u);
  EXPECT_EQ(tokenizer["added_tokens"].size(), 4u);
  EXPECT_EQ(tokenizer["added_tokens"][3]["special"], false);
}

TEST(TokenizerRebuild, NoSpacePrefix) {
  GgufBuilder builder = sentence_piece();
  builder.set("tokenizer.ggml.add_space_prefix", false);
  const Rebuilt rebuilt = rebuild(builder);
  ASSERT_TRUE(rebuilt.status.is_ok());
  EXPECT_EQ(rebuilt.tokenizer["normalizer"]["normalizers"].size(), 1u);
  EXPECT_EQ(rebuilt.tokenizer["decoder"]["decoders"].size(), 3u);
}

TEST(TokenizerRebuild, BosAndEosAsTheFileSays) {
  GgufBuilder builder = sentence_piece();
  builder.set("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(rebuild(builder).tokenizer["post_processor"], nullptr);
  builder.set("tokenizer.ggml.add_eos_token", true);
  EXPECT_EQ(
      rebuild(builder).tokenizer["post_processor"]["single"],
      json::parse(R"([{"Sequence":{"id":"A","type_id":0}},)"
                  R"({"SpecialToken":{"id":"</s>","type_id":0}}])"));
}

TEST(TokenizerRebuild, EveryTokenThatEndsAGenerationCounts) {
  GgufBuilder builder = sentence_piece();
  builder.set("tokenizer.ggml.eot_token_id", 10u);
  EXPECT_EQ(rebuild(builder).files.eos, (std::vector<int64_t>{2, 10}));
  builder.set("tokenizer.ggml.eot_token_id", 2u);
  EXPECT_EQ(rebuild(builder).files.eos, (std::vector<int64_t>{2}));
}

TEST(TokenizerRebuild, ControlTokensThatEndATurnAreKnownByTheirText) {
  for (const char* text : {"<|eot_id|>", "<|im_end|>", "<end_of_turn>"}) {
    GgufBuilder builder = byte_level();
    builder.set(
        "tokenizer.ggml.tokens",
        std::vector<std::string>{"</s>", "a", "b", "ab", text});
    EXPECT_EQ(rebuild(builder).files.eos, (std::vector<int64_t>{0}));
    builder.set(
        "tokenizer.ggml.token_type", std::vector<int32_t>{3, 1, 1, 1, 3});
    EXPECT_EQ(rebuild(builder).files.eos, (std::vector<int64_t>{0, 4}));
    builder.set("tokenizer.ggml.eos_token_id", 4u);
    EXPECT_EQ(rebuild(builder).files.eos, (std::vector<int64_t>{4}));
  }
}

TEST(TokenizerRebuild, PiecesThatAreTooLongAreRefused) {
  GgufBuilder builder = sentence_piece();
  const auto with_piece = [&](size_t length) {
    builder.set(
        "tokenizer.ggml.tokens",
        std::vector<std::string>{
            "<unk>",
            "<s>",
            "</s>",
            "<0x0A>",
            std::string(length, 'x'),
            "a",
            "b",
            "ab",
            "c",
            "d",
            "<tool>"});
  };
  with_piece(1024);
  EXPECT_TRUE(rebuild(builder).status.is_ok());
  with_piece(1025);
  EXPECT_THAT(problem(builder), HasSubstr("token 4 is longer than 1024 bytes"));
  EXPECT_EQ(rebuild(builder).status.code(), StatusCode::kUnsupported);
}

TEST(TokenizerRebuild, UnknownKindsAreNamed) {
  GgufBuilder builder = byte_level();
  builder.set("tokenizer.ggml.pre", "martian");
  EXPECT_THAT(problem(builder), HasSubstr("'martian' is not supported"));
  EXPECT_THAT(problem(builder), HasSubstr("smollm"));
  builder = byte_level();
  builder.set("tokenizer.ggml.model", "bert");
  EXPECT_THAT(problem(builder), HasSubstr("'bert' is not supported"));
}

TEST(TokenizerRebuild, EveryRequiredKeyIsMissed) {
  for (const char* key : {"model", "tokens", "token_type", "merges"}) {
    GgufBuilder builder = byte_level();
    builder.erase(std::string("tokenizer.ggml.") + key);
    EXPECT_THAT(problem(builder), HasSubstr(key));
  }
  GgufBuilder builder = sentence_piece();
  builder.erase("tokenizer.ggml.scores");
  EXPECT_THAT(problem(builder), HasSubstr("scores' is missing"));
}

TEST(TokenizerRebuild, DamagedVocabulary) {
  using Strings = std::vector<std::string>;
  GgufBuilder builder = byte_level();
  builder.set("tokenizer.ggml.tokens", Strings{"a", "b", "c", "a", "d"});
  EXPECT_THAT(problem(builder), HasSubstr("'a' stands twice"));
  builder.set("tokenizer.ggml.tokens", Strings{"a", "b", "c", "\xff", "d"});
  EXPECT_THAT(problem(builder), HasSubstr("token 3 is not UTF-8"));
  builder.set("tokenizer.ggml.tokens", Strings{"a", "b"});
  EXPECT_THAT(problem(builder), HasSubstr("differ in number"));
  for (const char* merge : {"", "ab", "a x", "b a", " ab"}) {
    builder = byte_level();
    builder.set("tokenizer.ggml.merges", Strings{merge});
    EXPECT_THAT(problem(builder), HasSubstr("merge 0, "));
  }
  builder = byte_level();
  builder.set("tokenizer.ggml.eos_token_id", 5u);
  EXPECT_THAT(problem(builder), HasSubstr("eos_token_id is 5"));
  builder = byte_level();
  builder.set("tokenizer.chat_template", "\xff");
  EXPECT_THAT(problem(builder), HasSubstr("chat template is not UTF-8"));
  builder = sentence_piece();
  builder.set("tokenizer.ggml.scores", std::vector<float>{0, 1});
  EXPECT_THAT(problem(builder), HasSubstr("scores differ"));
}

TEST(PreTokenizers, NamesAreKnown) {
  for (const char* name :
       {"default", "gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    ASSERT_NE(find_pre_tokenizer(name), nullptr);
    EXPECT_THAT(known_pre_tokenizers(), HasSubstr(name));
  }
  EXPECT_EQ(find_pre_tokenizer(""), nullptr);
}

TEST(PieceMerges, OrderIsTheConverters) {
  const std::vector<Piece> pieces = {
      {"a", -1, true},
      {"b", -1, true},
      {"ab", -5, true},
      {"ba", -5, true},
      {"aba", -5, true},
      {"<x>", 0, false},
      {"<", -1, true},
      {"x>", -1, true}};
  EXPECT_EQ(
      merges_from_pieces(pieces),
      (std::vector<Merge>{{"ab", "a"}, {"a", "ba"}, {"a", "b"}, {"b", "a"}}));
}

} // namespace
} // namespace ingle
