#include "text/stream_decoder.h"

#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "text/testing/sentence_piece_tokenizer.h"
#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

std::shared_ptr<const Tokenizer> load(const std::string& json) {
  auto tokenizer = Tokenizer::from_json(json, "tokenizer.json");
  EXPECT_TRUE(tokenizer.is_ok()) << tokenizer.status().message();
  return tokenizer.value();
}

std::shared_ptr<const Tokenizer> byte_level() {
  return load(tiny_tokenizer_json(
      {{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"\u0120", "w"}}));
}

// Counts what is decoded, so that a test sees the cost.
class CountingTokenizer final : public Tokenizer {
 public:
  explicit CountingTokenizer(std::shared_ptr<const Tokenizer> inner)
      : inner_(std::move(inner)) {}

  Result<std::vector<TokenId>> encode(
      std::string_view text,
      bool add_special_tokens) const override {
    return inner_->encode(text, add_special_tokens);
  }
  Result<std::string> decode(
      std::span<const TokenId> ids,
      bool skip_special_tokens) const override {
    decoded_tokens += ids.size();
    return inner_->decode(ids, skip_special_tokens);
  }
  std::optional<std::string> id_to_token(TokenId id) const override {
    return inner_->id_to_token(id);
  }
  Result<std::string> token_bytes(TokenId id) const override {
    return inner_->token_bytes(id);
  }
  std::optional<TokenId> token_to_id(std::string_view token) const override {
    return inner_->token_to_id(token);
  }
  TokenId vocab_size() const override {
    return inner_->vocab_size();
  }

  mutable size_t decoded_tokens = 0;

 private:
  std::shared_ptr<const Tokenizer> inner_;
};

std::string stream(
    std::shared_ptr<const Tokenizer> tokenizer,
    const std::vector<TokenId>& ids) {
  StreamDecoder decoder(std::move(tokenizer));
  std::string text;
  for (TokenId id : ids) {
    auto piece = decoder.push(id);
    EXPECT_TRUE(piece.is_ok()) << piece.status().message();
    text += *piece;
  }
  return text;
}

// `streamed` is `full` but for what may be an incomplete character.
void expect_equal_up_to_tail(
    const std::string& streamed,
    const std::string& full) {
  ASSERT_TRUE(full.starts_with(streamed)) << streamed << "\n" << full;
  std::string_view tail = std::string_view(full).substr(streamed.size());
  for (int i = 0; i < 3 && tail.starts_with(kReplacement); ++i) {
    tail.remove_prefix(kReplacement.size());
  }
  EXPECT_EQ(tail, "");
}

std::vector<TokenId> bytes(std::string_view text) {
  std::vector<TokenId> ids;
  for (char byte : text) {
    ids.push_back(static_cast<unsigned char>(byte));
  }
  return ids;
}

TEST(Acceptance, utf8_holdback) {
  StreamDecoder decoder(byte_level());
  std::vector<std::string> pieces;
  for (TokenId id : bytes("a\U0001F600b\u20AC")) {
    pieces.push_back(*decoder.push(id));
  }
  std::vector<std::string> expected = {
      "a", "", "", "", "\U0001F600", "b", "", "", "\u20AC"};
  EXPECT_EQ(pieces, expected);
  // An incomplete character at the end never comes.
  for (TokenId id : bytes("\xF0\x9F\x98")) {
    EXPECT_EQ(*decoder.push(id), "");
  }
}

TEST(StreamDecoder, SpecialTokensAreSkippedAndDropped) {
  std::vector<TokenId> ids = bytes("a b");
  for (int i = 0; i < 1000; ++i) {
    ids.insert(ids.begin() + 1, kTinyImEnd);
  }
  ids.insert(ids.begin(), kTinyEndOfText);
  auto counting = std::make_shared<CountingTokenizer>(byte_level());
  EXPECT_EQ(stream(counting, ids), "a b");
  EXPECT_LT(counting->decoded_tokens, 8 * ids.size());
}

TEST(StreamDecoder, SpecialTokensThatAreShownEndTheTextOfTheirPush) {
  const auto tokenizer =
      load(tiny_tokenizer_json({}, {"<|shown|>", "<|hidden|>"}));
  constexpr TokenId kShown = kTinyVocabSize;
  StreamDecoder decoder(tokenizer, {kShown});
  EXPECT_EQ(*decoder.push('a'), "a");
  EXPECT_EQ(*decoder.push(kTinyImEnd), "");
  EXPECT_EQ(*decoder.push(kShown + 1), "");
  EXPECT_EQ(*decoder.push(kShown), "<|shown|>");
  EXPECT_EQ(*decoder.push(0xC3), ""); // of a character
  EXPECT_EQ(*decoder.push(kShown), "\uFFFD<|shown|>");
  EXPECT_EQ(*decoder.push('b'), "b");
}

TEST(StreamDecoder, ASpecialTokenInsideACharacterDoesNotBreakIt) {
  std::vector<TokenId> ids = {0xE2, kTinyImEnd, 0x82, kTinyImEnd, 0xAC};
  EXPECT_EQ(stream(byte_level(), ids), "\u20AC");
}

TEST(StreamDecoder, BytesThatAreNoTextDoNotHoldTheRest) {
  std::vector<TokenId> ids(500, 0xFF);
  std::string text = stream(byte_level(), ids);
  EXPECT_EQ(text.size(), 497 * kReplacement.size());
  for (TokenId id : bytes("ok")) {
    ids.push_back(id);
  }
  EXPECT_EQ(stream(byte_level(), ids), *byte_level()->decode(ids, true));
}

TEST(StreamDecoder, AnUnknownIdIsAnErrorAndChangesNothing) {
  StreamDecoder decoder(byte_level());
  EXPECT_EQ(*decoder.push('a'), "a");
  EXPECT_EQ(*decoder.push(0xE2), "");
  for (TokenId id : {-1, 5000, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(decoder.push(id).status().code(), StatusCode::kInvalidRequest);
  }
  EXPECT_EQ(*decoder.push(0x82), "");
  EXPECT_EQ(*decoder.push(0xAC), "\u20AC");
}

TEST(StreamDecoder, RandomByteLevelIdsEqualFullDecode) {
  std::mt19937 random(11);
  auto tokenizer = byte_level();
  for (int round = 0; round < 300; ++round) {
    // Few different bytes: sequences that are nearly characters are common.
    const std::vector<TokenId> few = {
        0xF0,
        0x9F,
        0x98,
        0x80,
        0xE2,
        0x82,
        0xAC,
        0xFF,
        'a',
        ' ',
        257,
        259,
        261,
        262};
    std::vector<TokenId> ids;
    for (size_t size = random() % 80; size > 0; --size) {
      bool any = random() % 4 == 0;
      ids.push_back(
          any ? static_cast<TokenId>(random() % tokenizer->vocab_size())
              : few[random() % few.size()]);
    }
    expect_equal_up_to_tail(
        stream(tokenizer, ids), *tokenizer->decode(ids, true));
  }
}

// --- SentencePiece: a space before the text, bytes as a fallback -----------

class SentencePiece : public ::testing::TestWithParam<bool> {
 protected:
  TokenId id(std::string_view piece) const {
    return tokenizer_->token_to_id(piece).value();
  }
  std::vector<TokenId> byte_ids(std::string_view text) const {
    std::vector<TokenId> ids = bytes(text);
    for (TokenId& byte : ids) {
      byte += kFirstByteToken;
    }
    return ids;
  }

  std::shared_ptr<const Tokenizer> tokenizer_ =
      load(sentence_piece_tokenizer_json(
          GetParam() ? SpaceStripping::kMetaspace
                     : SpaceStripping::kReplaceAndStrip));
};

INSTANTIATE_TEST_SUITE_P(Decoders, SentencePiece, ::testing::Bool());

TEST_P(SentencePiece, OnlyTheFirstSpaceIsStripped) {
  std::vector<TokenId> ids = {
      id("\u2581a"), id("\u2581a"), id("\u2581"), id("\u2581"), id("\u2581a")};
  EXPECT_EQ(stream(tokenizer_, ids), "a a   a");
  EXPECT_EQ(*tokenizer_->decode(ids, true), "a a   a");
}

TEST_P(SentencePiece, ASpaceAloneAtTheBeginningLeavesTheNext) {
  std::vector<TokenId> ids = {id("</s>"), id("\u2581"), id("\u2581a")};
  EXPECT_EQ(stream(tokenizer_, ids), " a");
  EXPECT_EQ(*tokenizer_->decode(ids, true), " a");
}

TEST_P(SentencePiece, ARunOfSpacesStaysLinear) {
  std::vector<TokenId> ids(2000, id("\u2581"));
  auto counting = std::make_shared<CountingTokenizer>(tokenizer_);
  EXPECT_EQ(stream(counting, ids), std::string(1999, ' '));
  EXPECT_LT(counting->decoded_tokens, 64 * ids.size());
}

TEST_P(SentencePiece, CharactersOfByteTokensComeWhenTheyAreComplete) {
  StreamDecoder decoder(tokenizer_);
  std::vector<std::string> pieces;
  for (TokenId byte : byte_ids("\U0001F600\u20AC\U0001F600")) {
    pieces.push_back(*decoder.push(byte));
  }
  std::vector<std::string> expected = {
      "", "", "", "\U0001F600", "", "", "\u20AC", "", "", "", "\U0001F600"};
  EXPECT_EQ(pieces, expected);
}

TEST_P(SentencePiece, WhatWasShownStaysWhenItsRunOfBytesTurnsBad) {
  std::vector<TokenId> ids = byte_ids("\u20AC\xFF");
  ids.push_back(id("a"));
  EXPECT_EQ(stream(tokenizer_, ids), "\u20AC\uFFFDa");
  // decode() knows the whole run.
  EXPECT_EQ(*tokenizer_->decode(ids, true), "\uFFFD\uFFFD\uFFFD\uFFFDa");
}

TEST_P(SentencePiece, RandomIdsEqualFullDecode) {
  std::mt19937 random(13);
  const std::vector<std::vector<TokenId>> parts = {
      {id("a")},
      {id("\u2581")},
      {id("\u2581a")},
      {id("</s>")},
      byte_ids("\U0001F600"),
      byte_ids("\u20AC"),
      byte_ids("\n")};
  const std::vector<TokenId> bad = byte_ids("\xFF\x82\x98");
  for (int round = 0; round < 200; ++round) {
    std::vector<TokenId> ids;
    for (size_t size = random() % 60; size > 0; --size) {
      const std::vector<TokenId>& part = parts[random() % parts.size()];
      ids.insert(ids.end(), part.begin(), part.end());
      if (random() % 8 == 0) {
        // Bytes that are no text, in a run of their own.
        ids.push_back(id("a"));
        for (size_t count = random() % 30; count > 0; --count) {
          ids.push_back(bad[random() % bad.size()]);
        }
        ids.push_back(id("a"));
      }
    }
    expect_equal_up_to_tail(
        stream(tokenizer_, ids), *tokenizer_->decode(ids, true));
  }
}

// --- Cost ------------------------------------------------------------------

TEST(StreamDecoder, DecodesLinearlyManyTokens) {
  for (size_t size : {1000u, 8000u}) {
    auto counting = std::make_shared<CountingTokenizer>(byte_level());
    std::vector<TokenId> ids;
    for (size_t i = 0; i < size; ++i) {
      ids.push_back(static_cast<TokenId>(i % kTinyVocabSize));
    }
    stream(counting, ids);
    EXPECT_LT(counting->decoded_tokens, 20 * size);
  }
}

TEST(StreamDecoder, ReadableTextDecodesAFewTokensForEach) {
  auto counting = std::make_shared<CountingTokenizer>(byte_level());
  std::vector<TokenId> ids(5000, 'x');
  EXPECT_EQ(stream(counting, ids), std::string(5000, 'x'));
  EXPECT_LE(counting->decoded_tokens, 3 * ids.size());
}

} // namespace
} // namespace ingle
