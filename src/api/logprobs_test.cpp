#include "api/logprobs.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

// Token i is pieces[i], as it stands within a text.
class PieceTokenizer final : public Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces)
      : pieces_(std::move(pieces)) {}

  Result<std::vector<TokenId>> encode(std::string_view, bool) const override {
    return Status::internal("not asked for");
  }
  Result<std::string> decode(std::span<const TokenId>, bool) const override {
    return Status::internal("not asked for");
  }
  std::optional<std::string> id_to_token(TokenId) const override {
    return std::nullopt;
  }
  Result<std::string> token_bytes(TokenId id) const override {
    return id < vocab_size()
        ? Result<std::string>(pieces_[static_cast<size_t>(id)])
        : Status::invalid_request("no such token");
  }
  std::optional<TokenId> token_to_id(std::string_view) const override {
    return std::nullopt;
  }
  TokenId vocab_size() const override {
    return static_cast<TokenId>(pieces_.size());
  }

 private:
  const std::vector<std::string> pieces_;
};

std::vector<GeneratedToken> tokens(const std::vector<TokenId>& ids) {
  std::vector<GeneratedToken> list;
  for (const TokenId id : ids) {
    list.push_back({id, -1, {}});
  }
  return list;
}

// Where the tokens 0, 1, ... stand in an echo of all of them.
std::string offsets_of(
    const std::vector<std::string>& pieces,
    const std::string& echo) {
  const LogprobsWriter writer(std::make_shared<PieceTokenizer>(pieces));
  std::vector<TokenId> ids;
  for (size_t i = 0; i < pieces.size(); ++i) {
    ids.push_back(static_cast<TokenId>(i));
  }
  Json block;
  TextPosition position;
  writer.add_completion(block, tokens(ids), echo, position);
  return to_text(block["text_offset"]);
}

TEST(Logprobs, OffsetsAreThoseOfTheText) {
  EXPECT_EQ(offsets_of({"a", "bc", "d"}, "abcd"), "[0,1,3]");
}

TEST(Logprobs, TokenThatTheTokenizerPutInFrontTakesNoRoom) {
  EXPECT_EQ(offsets_of({"<s>", "ab", "c"}, "abc"), "[0,0,2]");
}

TEST(Logprobs, SpaceThatAVocabularyPutsInFrontTakesNoRoom) {
  EXPECT_EQ(offsets_of({"<s>", " Hello", " you"}, "Hello you"), "[0,0,5]");
}

TEST(Logprobs, TokenThatEndsWithinACharacterIsCountedInWholeOnes) {
  // A character of three bytes over two tokens, the second of which goes on.
  EXPECT_EQ(
      offsets_of(
          {"a\xe2\x82",
           "\xac"
           "b",
           "c"},
          "a\xe2\x82\xac"
          "bc"),
      "[0,2,3]");
}

TEST(Logprobs, ChosenTokenIsAmongItsAlternatives) {
  const LogprobsWriter writer(
      std::make_shared<PieceTokenizer>(std::vector<std::string>{"a", "b"}));
  Json block;
  TextPosition position;
  const GeneratedToken sampled = {1, -3, {{0, -0.5f}}};
  writer.add_completion(block, {&sampled, 1}, "", position);
  EXPECT_EQ(to_text(block["top_logprobs"]), R"([{"a":-0.5,"b":-3.0}])");
}

TEST(Logprobs, AlternativesThatAreNoTextKeepApart) {
  const LogprobsWriter writer(std::make_shared<PieceTokenizer>(
      std::vector<std::string>{"\xe2\x82", "\xe2\x83"}));
  Json block;
  TextPosition position;
  const GeneratedToken sampled = {0, -1, {{0, -1}, {1, -2}}};
  writer.add_completion(block, {&sampled, 1}, "", position);
  EXPECT_EQ(
      to_text(block["top_logprobs"]),
      R"([{"bytes:\\xe2\\x82":-1.0,"bytes:\\xe2\\x83":-2.0}])");
}

TEST(Logprobs, IdWithoutTextHasNone) {
  const LogprobsWriter writer(
      std::make_shared<PieceTokenizer>(std::vector<std::string>{"a"}));
  Json block;
  writer.add_chat(block, tokens({7}));
  EXPECT_EQ(
      to_text(block),
      R"({"content":[{"id":7,"token":"","bytes":[],"logprob":-1.0,)"
      R"("top_logprobs":[]}],"refusal":null})");
}

TEST(Logprobs, BlockGrowsPieceByPiece) {
  const LogprobsWriter writer(
      std::make_shared<PieceTokenizer>(std::vector<std::string>{"a", "b"}));
  Json block;
  TextPosition position;
  writer.add_completion(block, tokens({0}), "", position);
  writer.add_completion(block, tokens({1, 0}), "", position);
  EXPECT_EQ(to_text(block["tokens"]), R"(["a","b","a"])");
  EXPECT_EQ(to_text(block["text_offset"]), "[0,1,2]");
}

} // namespace
} // namespace ingle
