#include "text/tokenizer.h"

#include <array>
#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing/sentence_piece_tokenizer.h"
#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<const Tokenizer> load(const std::string& json) {
  auto tokenizer = Tokenizer::from_json(json, "tokenizer.json");
  EXPECT_TRUE(tokenizer.is_ok()) << tokenizer.status().message();
  return tokenizer.value();
}

std::shared_ptr<const Tokenizer> tiny() {
  return load(tiny_tokenizer_json());
}

std::string
replaced(std::string text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_corruption(const std::string& json, const char* words) {
  auto tokenizer = Tokenizer::from_json(json, "m/tokenizer.json");
  ASSERT_FALSE(tokenizer.is_ok());
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kCorruption);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("m/tokenizer.json: "));
  EXPECT_THAT(tokenizer.status().message(), HasSubstr(words));
  EXPECT_THAT(tokenizer.status().message(), Not(HasSubstr("\n")));
}

TEST(Tokenizer, EveryByteComesBack) {
  auto tokenizer = tiny();
  std::string text = "Hi, \u00e9\U0001F600\n\t";
  text.push_back('\0');
  auto ids = tokenizer->encode(text, true);
  ASSERT_TRUE(ids.is_ok());
  EXPECT_EQ(ids->size(), text.size());
  EXPECT_EQ(*tokenizer->decode(*ids, true), text);
}

TEST(Tokenizer, MergesMakeTokens) {
  auto tokenizer = load(tiny_tokenizer_json(
      {{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"\u0120", "w"}}));
  EXPECT_THAT(*tokenizer->encode("hello w", false), ElementsAre(261, 'o', 262));
  EXPECT_EQ(tokenizer->id_to_token(261), "hell");
  EXPECT_EQ(tokenizer->vocab_size(), 263);
}

TEST(Tokenizer, SpecialTokensInTextAreRecognised) {
  auto tokenizer = tiny();
  std::vector<TokenId> expected = {kTinyImStart, 'u', kTinyImEnd};
  EXPECT_EQ(*tokenizer->encode("<|im_start|>u<|im_end|>", false), expected);
  EXPECT_EQ(*tokenizer->decode(expected, true), "u");
  EXPECT_EQ(*tokenizer->decode(expected, false), "<|im_start|>u<|im_end|>");
}

TEST(Tokenizer, ThePostProcessorAddsBosWhenAsked) {
  auto tokenizer =
      load(sentence_piece_tokenizer_json(SpaceStripping::kReplaceAndStrip));
  TokenId ab = tokenizer->token_to_id("\u2581ab").value();
  EXPECT_THAT(*tokenizer->encode("ab", true), ElementsAre(1, ab));
  EXPECT_THAT(*tokenizer->encode("ab", false), ElementsAre(ab));
}

TEST(Tokenizer, UnknownCharactersFallBackToBytes) {
  auto tokenizer =
      load(sentence_piece_tokenizer_json(SpaceStripping::kReplaceAndStrip));
  auto ids = tokenizer->encode("ab\u20AC", false);
  ASSERT_TRUE(ids.is_ok());
  EXPECT_EQ(ids->size(), 4u);
  EXPECT_EQ(*tokenizer->decode(*ids, true), "ab\u20AC");
}

TEST(Tokenizer, NamesAndIds) {
  auto tokenizer = tiny();
  EXPECT_EQ(tokenizer->vocab_size(), kTinyVocabSize);
  EXPECT_EQ(tokenizer->id_to_token(' '), "\u0120");
  EXPECT_EQ(tokenizer->id_to_token(kTinyImEnd), "<|im_end|>");
  EXPECT_EQ(tokenizer->token_to_id("<|im_end|>"), kTinyImEnd);
  EXPECT_EQ(tokenizer->id_to_token(kTinyVocabSize), std::nullopt);
  EXPECT_EQ(tokenizer->id_to_token(-1), std::nullopt);
  EXPECT_EQ(tokenizer->token_to_id("nothing like it"), std::nullopt);
  EXPECT_EQ(tokenizer->token_to_id("\xFF"), std::nullopt);
}

std::string bytes_of(
    const Tokenizer& tokenizer,
    const std::vector<TokenId>& ids) {
  std::string all;
  for (TokenId id : ids) {
    auto bytes = tokenizer.token_bytes(id);
    EXPECT_TRUE(bytes.is_ok()) << bytes.status().message();
    all += *bytes;
  }
  return all;
}

// Any UTF-8, U+0000 included.
std::string random_text(std::mt19937& random) {
  static constexpr std::array<char32_t, 5> kLimits = {
      0x80, 0x180, 0x800, 0xD800, 0x110000};
  std::string text;
  for (size_t length = random() % 40; length > 0; --length) {
    char32_t c = random() % kLimits[random() % kLimits.size()];
    if (c < 0x80) {
      text += static_cast<char>(c);
      continue;
    }
    if (c >= 0xD800 && c < 0xE000) {
      c = 0xFFFD; // half of a surrogate pair is no character
    }
    const int followers = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr std::array<int, 4> kMarks = {0, 0xC0, 0xE0, 0xF0};
    text += static_cast<char>(kMarks[followers] | (c >> (6 * followers)));
    for (int i = followers - 1; i >= 0; --i) {
      text += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F));
    }
  }
  return text;
}

TEST(Tokenizer, BytesOfTheTokensAreTheText) {
  auto tokenizer = load(tiny_tokenizer_json(
      {{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"\u0120", "w"}}));
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = "hello w<|im_end|>" + random_text(random);
    auto ids = tokenizer->encode(text, false);
    ASSERT_TRUE(ids.is_ok()) << ids.status().message();
    EXPECT_EQ(bytes_of(*tokenizer, *ids), text);
  }
}

TEST(Tokenizer, APartOfACharacterIsItsByte) {
  auto tokenizer = tiny();
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(
        *tokenizer->token_bytes(byte), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(*tokenizer->token_bytes(kTinyImEnd), "<|im_end|>");
}

TEST(Tokenizer, SpaceMarksAndFallbackTokensAreTheirBytes) {
  for (auto stripping :
       {SpaceStripping::kReplaceAndStrip, SpaceStripping::kMetaspace}) {
    auto tokenizer = load(sentence_piece_tokenizer_json(stripping));
    TokenId ab = tokenizer->token_to_id("\u2581ab").value();
    EXPECT_EQ(*tokenizer->token_bytes(ab), " ab");
    EXPECT_EQ(*tokenizer->token_bytes(kFirstByteToken + 0xE2), "\xE2");
    EXPECT_EQ(*tokenizer->token_bytes(1), "<s>");
    auto ids = tokenizer->encode("ab\u20AC ab\U0001F600", false);
    EXPECT_EQ(bytes_of(*tokenizer, *ids), " ab\u20AC ab\U0001F600");
  }
}

TEST(Tokenizer, BytesOfAnUnknownTokenAreRefused) {
  for (TokenId id : {-1, 259, INT32_MAX}) {
    auto bytes = tiny()->token_bytes(id);
    ASSERT_FALSE(bytes.is_ok());
    EXPECT_EQ(bytes.status().code(), StatusCode::kInvalidRequest);
    EXPECT_THAT(bytes.status().message(), HasSubstr(std::to_string(id)));
  }
}

TEST(Tokenizer, BytesOfATokenThatALastStepChangesAreThoseWithinAText) {
  // The decoder of WordPiece puts a space before a word that is not the first.
  std::string json = replaced(
      tiny_tokenizer_json(),
      R"("decoder":{"type":"ByteLevel","add_prefix_space":false,)"
      R"("trim_offsets":true,"use_regex":true})",
      R"("decoder":{"type":"WordPiece","prefix":"##","cleanup":false})");
  EXPECT_EQ(*load(json)->token_bytes('a'), " a");
}

TEST(Tokenizer, AFileThatTheLibraryPanicsOnIsCorruption) {
  // The second half of a merge is shorter than the prefix that it should have.
  expect_corruption(
      replaced(
          tiny_tokenizer_json({{"a", "b"}}),
          R"("continuing_subword_prefix":null)",
          R"("continuing_subword_prefix":"##")"),
      "not a tokenizer");
}

TEST(Tokenizer, ATextThatTheLibraryPanicsOnMeansABrokenFile) {
  // A table for the normalizer that has no entries.
  auto tokenizer = load(replaced(
      tiny_tokenizer_json(),
      R"("normalizer":null)",
      R"("normalizer":{"type":"Precompiled",)"
      R"("precompiled_charsmap":"AAAAAA=="})"));
  auto ids = tokenizer->encode("a", false);
  ASSERT_FALSE(ids.is_ok());
  EXPECT_EQ(ids.status().code(), StatusCode::kCorruption);
  EXPECT_THAT(ids.status().message(), HasSubstr("cannot use this"));
  EXPECT_THAT(ids.status().message(), Not(HasSubstr("registry")));
}

TEST(Tokenizer, NothingEncodesToNothing) {
  auto tokenizer = tiny();
  EXPECT_TRUE(tokenizer->encode("", true)->empty());
  EXPECT_EQ(*tokenizer->decode({}, true), "");
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefused) {
  auto ids = tiny()->encode("ab\xFF", false);
  ASSERT_FALSE(ids.is_ok());
  EXPECT_EQ(ids.status().code(), StatusCode::kInvalidRequest);
  EXPECT_THAT(ids.status().message(), HasSubstr("offset 2"));
}

TEST(Tokenizer, UnknownIdsAreRefusedByNumber) {
  for (TokenId id : {-1, 259, INT32_MAX}) {
    std::vector<TokenId> ids = {'a', id};
    auto text = tiny()->decode(ids, true);
    ASSERT_FALSE(text.is_ok());
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidRequest);
    EXPECT_THAT(text.status().message(), HasSubstr(std::to_string(id)));
  }
}

TEST(Tokenizer, LoadNamesTheFile) {
  auto fs = make_memory_file_system();
  EXPECT_EQ(
      Tokenizer::load(*fs, "tokenizer.json").status().code(),
      StatusCode::kNotFound);
  std::string json = tiny_tokenizer_json();
  ASSERT_TRUE(write_file(*fs, "tokenizer.json", as_bytes(json)).is_ok());
  EXPECT_TRUE(Tokenizer::load(*fs, "tokenizer.json").is_ok());
}

TEST(Tokenizer, MalformedFilesAreNamedInOneLine) {
  expect_corruption("", "");
  expect_corruption("{", "");
  expect_corruption("null", "");
  expect_corruption("[]", "");
  expect_corruption("{\"version\": \"1.0\"}", "");
  expect_corruption("\xFF\xFE", "UTF-8");
  expect_corruption(
      "{\"version\":\"1.0\",\"model\":" + std::string(100000, '['),
      "recursion");
}

TEST(Tokenizer, EveryTruncationOfAFileIsRefused) {
  std::string json = tiny_tokenizer_json({{"h", "e"}});
  for (size_t size = 0; size < json.size(); size += 97) {
    EXPECT_FALSE(
        Tokenizer::from_json(json.substr(0, size), "tokenizer.json").is_ok());
  }
}

TEST(Tokenizer, AMergeOfUnknownTokensIsRefused) {
  expect_corruption(
      replaced(
          tiny_tokenizer_json({{"h", "e"}}),
          "[\"h\",\"e\"]",
          "[\"nobody\",\"e\"]"),
      "nobody");
}

TEST(Tokenizer, HugeIdsAreRefused) {
  expect_corruption(
      replaced(tiny_tokenizer_json(), "\"a\":97", "\"a\":4294967295"),
      "4294967295");
}

TEST(Tokenizer, PaddingAndTruncationOfTheFileAreIgnored) {
  std::string json = replaced(
      tiny_tokenizer_json(),
      "\"padding\":null",
      "\"padding\":{\"strategy\":{\"Fixed\":4000000000},"
      "\"direction\":\"Right\",\"pad_to_multiple_of\":null,\"pad_id\":0,"
      "\"pad_type_id\":0,\"pad_token\":\"x\"}");
  json = replaced(
      json,
      "\"truncation\":null",
      "\"truncation\":{\"direction\":\"Right\",\"max_length\":2,"
      "\"strategy\":\"LongestFirst\",\"stride\":0}");
  EXPECT_EQ(load(json)->encode("abcd", true)->size(), 4u);
}

TEST(Tokenizer, ManyThreadsShareOne) {
  auto tokenizer = load(tiny_tokenizer_json(
      {{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"\u0120", "w"}}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&tokenizer, t] {
      for (int i = 0; i < 200; ++i) {
        std::string text = "hello world " + std::to_string(i % (t + 7));
        auto ids = tokenizer->encode(text, true);
        EXPECT_EQ(*tokenizer->decode(*ids, true), text);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

} // namespace
} // namespace ingle
