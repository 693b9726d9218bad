#include "text/grammar.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing/sentence_piece_tokenizer.h"
#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = GrammarSpec::Kind;

constexpr int kVocabSize = 300; // the last ones have no text

std::shared_ptr<const Tokenizer> tiny() {
  auto tokenizer = Tokenizer::from_json(
      tiny_tokenizer_json({{"a", "b"}, {"\"", ":"}}), "tokenizer.json");
  EXPECT_TRUE(tokenizer.is_ok()) << tokenizer.status().message();
  return *tokenizer;
}

// Grammars of one tokenizer, and the answers that they allow.
class GrammarTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Grammar> compile(Kind kind, std::string text) {
    auto grammar = compiler_.compile({kind, std::move(text)});
    EXPECT_TRUE(grammar.is_ok()) << grammar.status().message();
    return grammar.is_ok() ? *grammar : nullptr;
  }
  std::shared_ptr<const Grammar> schema(std::string text) {
    return compile(Kind::kJsonSchema, std::move(text));
  }
  std::string refusal(Kind kind, const std::string& text) {
    const auto grammar = compiler_.compile({kind, text});
    EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidRequest)
        << text.substr(0, 100);
    EXPECT_THAT(grammar.status().message(), Not(HasSubstr("non-verbose")));
    return grammar.status().message();
  }

  static std::vector<TokenId> allowed(GrammarMatcher& matcher) {
    std::vector<uint32_t> bits((kVocabSize + 31) / 32, ~0u);
    EXPECT_TRUE(matcher.mask(bits).is_ok());
    std::vector<TokenId> ids;
    for (TokenId id = 0; id < static_cast<TokenId>(bits.size() * 32); ++id) {
      const auto at = static_cast<size_t>(id);
      if ((bits[at / 32] >> (at % 32) & 1) != 0) {
        ids.push_back(id);
      }
    }
    return ids;
  }
  static bool allows(GrammarMatcher& matcher, TokenId id) {
    const auto ids = allowed(matcher);
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  }

  // How much of the text the grammar takes, byte by byte.
  static size_t follow(GrammarMatcher& matcher, std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const auto token = static_cast<TokenId>(static_cast<uint8_t>(text[i]));
      if (!matcher.accept(token).is_ok()) {
        return i;
      }
    }
    return text.size();
  }
  // True iff the text is a whole answer.
  static bool matches(
      const std::shared_ptr<const Grammar>& grammar,
      std::string_view text) {
    const auto matcher = *grammar->make_matcher();
    return follow(*matcher, text) == text.size() && matcher->is_complete();
  }

  const GrammarCompiler compiler_{
      tiny(),
      {kTinyEndOfText, kTinyImEnd},
      kVocabSize};
};

TEST_F(GrammarTest, ASchemaTakesWhatIsValidAndNothingElse) {
  const auto grammar = schema(
      R"({"type":"object","properties":{"age":{"type":"integer","minimum":0}},
          "required":["age"],"additionalProperties":false})");
  EXPECT_TRUE(matches(grammar, R"({"age":7})"));
  EXPECT_TRUE(matches(grammar, "{ \"age\": 7\n}"));
  EXPECT_FALSE(matches(grammar, R"({"age":-7})"));
  EXPECT_FALSE(matches(grammar, R"({"name":7})"));
  EXPECT_FALSE(matches(grammar, R"({})"));
}

TEST_F(GrammarTest, PropertiesComeInTheSchemasOrder) {
  const auto grammar = schema(
      R"({"type":"object","properties":{"b":{"type":"null"},
          "a":{"type":"null"}},"required":["a","b"]})");
  EXPECT_TRUE(matches(grammar, R"({"b":null,"a":null})"));
  EXPECT_FALSE(matches(grammar, R"({"a":null,"b":null})"));
}

TEST_F(GrammarTest, WhiteSpaceOfJsonIsBounded) {
  const auto grammar = schema(R"({"type":"array"})");
  EXPECT_TRUE(matches(grammar, "[\n" + std::string(64, ' ') + "1]"));
  EXPECT_FALSE(matches(grammar, "[\n" + std::string(65, ' ') + "1]"));
  EXPECT_FALSE(matches(grammar, "[\n\n1]"));
}

TEST_F(GrammarTest, ASchemaCannotUnboundTheWhiteSpace) {
  const auto grammar =
      schema(R"({"x-guidance":{"whitespace_flexible":true},"type":"array"})");
  EXPECT_FALSE(matches(grammar, "[\n\n1]"));
}

TEST_F(GrammarTest, AnyJsonObjectIsAnObject) {
  const GrammarSpec spec = any_json_object();
  const auto grammar = compile(spec.kind, spec.text);
  EXPECT_TRUE(matches(grammar, R"({"a":[1,{"b":"\n"}]})"));
  EXPECT_FALSE(matches(grammar, "[]"));
}

TEST_F(GrammarTest, ARegexIsOfTheWholeAnswer) {
  const auto grammar = compile(Kind::kRegex, "[0-9]{3}-/");
  EXPECT_TRUE(matches(grammar, "123-/"));
  EXPECT_FALSE(matches(grammar, "123-/4"));
  EXPECT_FALSE(matches(grammar, "x123-/"));
}

TEST_F(GrammarTest, AChoiceIsOneOfItsTexts) {
  const auto grammar = compile(Kind::kChoice, R"(["yes","\"no\"","\u00e9\n"])");
  EXPECT_TRUE(matches(grammar, "yes"));
  EXPECT_TRUE(matches(grammar, "\"no\""));
  EXPECT_TRUE(matches(grammar, "\u00e9\n"));
  EXPECT_FALSE(matches(grammar, "no"));
  EXPECT_FALSE(matches(grammar, "ye"));
}

TEST_F(GrammarTest, ALarkGrammarIsFollowed) {
  const auto grammar =
      compile(Kind::kLark, "start: \"(\" start \")\" | /[a-c]+/");
  EXPECT_TRUE(matches(grammar, "((ab))"));
  EXPECT_FALSE(matches(grammar, "((ab)"));
}

TEST_F(GrammarTest, AnAnswerEndsWhereNothingCanFollow) {
  const auto matcher = *compile(Kind::kChoice, R"(["a","ab"])")->make_matcher();
  EXPECT_EQ(follow(*matcher, "a"), 1u);
  EXPECT_TRUE(matcher->is_complete());
  EXPECT_FALSE(matcher->has_ended());
  EXPECT_EQ(follow(*matcher, "b"), 1u);
  EXPECT_TRUE(matcher->has_ended());
  EXPECT_THAT(allowed(*matcher), ElementsAre(kTinyEndOfText, kTinyImEnd));
}

TEST_F(GrammarTest, AnEndOfSequenceComesOnlyWhereTheAnswerMayEnd) {
  const auto matcher = *compile(Kind::kRegex, "ab?")->make_matcher();
  EXPECT_FALSE(allows(*matcher, kTinyImEnd));
  EXPECT_EQ(follow(*matcher, "a"), 1u);
  EXPECT_TRUE(allows(*matcher, kTinyEndOfText));
  EXPECT_TRUE(allows(*matcher, kTinyImEnd));
  EXPECT_TRUE(allows(*matcher, 'b'));
  ASSERT_TRUE(matcher->accept(kTinyImEnd).is_ok());
  EXPECT_TRUE(matcher->has_ended());
}

TEST_F(GrammarTest, TokensOfSeveralCharactersAreAllowedAsAWhole) {
  const TokenId ab = kTinyVocabSize;
  const TokenId quote_colon = kTinyVocabSize + 1;
  const auto text = compile(Kind::kRegex, "ab+|c");
  EXPECT_THAT(allowed(**text->make_matcher()), ElementsAre('a', 'c', ab));
  const auto object = schema(
      R"({"type":"object","properties":{"a":{"type":"null"}},
          "required":["a"]})");
  const auto matcher = *object->make_matcher();
  EXPECT_EQ(follow(*matcher, "{\"a"), 3u);
  EXPECT_TRUE(allows(*matcher, quote_colon));
}

TEST_F(GrammarTest, SpecialTokensAndStrayBytesAreNoText) {
  const auto matcher = *schema(R"({"type":"string"})")->make_matcher();
  EXPECT_EQ(follow(*matcher, "\""), 1u);
  EXPECT_TRUE(allows(*matcher, '<'));
  EXPECT_FALSE(allows(*matcher, kTinyImStart));
  EXPECT_FALSE(allows(*matcher, kTinyImEnd));
  EXPECT_FALSE(allows(*matcher, 0xFF));
  for (TokenId id = kTinyVocabSize + 2; id < kVocabSize; ++id) {
    EXPECT_FALSE(allows(*matcher, id)) << id;
  }
}

TEST_F(GrammarTest, TheNameOfASpecialTokenIsSpelled) {
  const auto grammar = schema(R"({"const":"<|im_end|>"})");
  EXPECT_TRUE(matches(grammar, "\"<|im_end|>\""));
}

TEST_F(GrammarTest, CharactersStayWholeWhereTokensCutThem) {
  const auto matcher = *schema(R"({"type":"string"})")->make_matcher();
  EXPECT_EQ(follow(*matcher, "\"\xC3"), 2u);
  EXPECT_FALSE(allows(*matcher, '"'));
  EXPECT_EQ(follow(*matcher, "\xA9\""), 2u);
  EXPECT_TRUE(matcher->has_ended());
}

TEST_F(GrammarTest, ALarkGrammarRefersToItsParts) {
  const auto grammar = *compiler_.compile(
      {Kind::kLark,
       "start: \"<\" @object \">\" @digits",
       {{"object", Kind::kJsonSchema, R"({"type":"object"})"},
        {"digits", Kind::kRegex, "[0-9]+"}}});
  EXPECT_TRUE(matches(grammar, R"(<{"a": 1}>23)"));
  EXPECT_FALSE(matches(grammar, R"(<{"a": 1}>)"));
}

TEST_F(GrammarTest, AFaultOfAPartNamesIt) {
  const auto grammar = compiler_.compile(
      {Kind::kLark,
       "start: @a | @b",
       {{"a", Kind::kJsonSchema, R"({"type":"object"})"},
        {"b", Kind::kJsonSchema, R"({"items":{"type":"str"}})"}}});
  EXPECT_EQ(grammar.status().where(), "b");
  EXPECT_EQ(grammar.status().message(), "items: Invalid type: str");
}

TEST_F(GrammarTest, AFaultOfASchemaNamesItsPlace) {
  EXPECT_EQ(
      refusal(
          Kind::kJsonSchema, R"({"properties":{"a":{"items":{"not":{}}}}})"),
      "properties.a.items: Unimplemented keys: [\"not\"]");
  EXPECT_EQ(
      refusal(
          Kind::kJsonSchema, R"({"anyOf":[{"type":"null"},{"minimum":"x"}]})"),
      "anyOf[1]: Expected f64 for 'minimum', got \"x\"");
  EXPECT_EQ(
      refusal(
          Kind::kJsonSchema,
          R"({"$ref":"#/$defs/B","$defs":{"B":{"type":"str"}}})"),
      "$defs.B: Invalid type: str");
  EXPECT_EQ(
      refusal(Kind::kJsonSchema, R"({"format":"bogus"})"),
      "Unknown format: bogus");
}

TEST_F(GrammarTest, WhatIsNoGrammarIsRefusedWithTheLibrarysWords) {
  EXPECT_THAT(refusal(Kind::kJsonSchema, "{"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(Kind::kJsonSchema, "5"), HasSubstr("object or boolean"));
  EXPECT_THAT(refusal(Kind::kJsonSchema, "false"), HasSubstr("Unsatisfiable"));
  EXPECT_THAT(refusal(Kind::kRegex, "("), HasSubstr("unclosed group"));
  EXPECT_THAT(refusal(Kind::kRegex, "(?=a)"), HasSubstr("look-around"));
  EXPECT_THAT(refusal(Kind::kLark, "start: foo"), HasSubstr("unknown name"));
  EXPECT_THAT(refusal(Kind::kLark, ""), HasSubstr("no start rule"));
  EXPECT_THAT(refusal(Kind::kLark, "start: start"), HasSubstr("no text"));
  EXPECT_THAT(refusal(Kind::kChoice, "[1]"), HasSubstr("list of strings"));
  EXPECT_THAT(refusal(Kind::kRegex, "\xFF"), HasSubstr("UTF-8"));
}

std::string repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

TEST_F(GrammarTest, HostileGrammarsCostOneRefusal) {
  refusal(Kind::kRegex, "(a{1000}){1000}");
  refusal(Kind::kRegex, repeated("(", 300) + "a" + repeated(")*", 300));
  refusal(Kind::kJsonSchema, R"({"type":"integer","multipleOf":98765431})");
  refusal(
      Kind::kJsonSchema,
      R"({"allOf":[{"multipleOf":0.997},{"multipleOf":991}]})");
  refusal(Kind::kLark, "start: %json {\"multipleOf\": 98765431}");
  refusal(Kind::kLark, "start: %json {\"multiple\\u004ff\": 98765431}");
  refusal(Kind::kLark, "start: " + repeated("(", 20'000));
  refusal(
      Kind::kLark, "start: x::0\nx::_: \"a\" %if " + repeated("not(", 20'000));
  refusal(Kind::kRegex, std::string(kMaxGrammarBytes + 1, 'a'));
  EXPECT_TRUE(matches(schema(R"({"multipleOf":0.25})"), "1.25"));
}

TEST_F(GrammarTest, LongChainsOfDefinitionsFitTheStack) {
  constexpr int kLinks = 5000;
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < kLinks; ++i) {
    chain += "\"d" + std::to_string(i) + R"(":{"$ref":"#/$defs/d)" +
        std::to_string(i + 1) + "\"},";
  }
  chain += "\"d" + std::to_string(kLinks) + R"(":{"type":"null"}}})";
  EXPECT_TRUE(matches(schema(chain), "null"));
}

TEST_F(GrammarTest, AMatcherThatFailsBreaksNoOther) {
  const auto grammar = compile(Kind::kRegex, "ab");
  const auto failing = *grammar->make_matcher();
  const auto other = *grammar->make_matcher();
  const Status status = failing->accept('x');
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_FALSE(status.message().empty());
  std::vector<uint32_t> bits(1);
  EXPECT_FALSE(failing->mask(bits).is_ok());
  EXPECT_EQ(follow(*other, "ab"), 2u);
  EXPECT_TRUE(other->has_ended());
  EXPECT_TRUE(matches(grammar, "ab"));
}

TEST_F(GrammarTest, AMatcherOutlivesItsGrammar) {
  auto grammar = compile(Kind::kRegex, "ab");
  const auto matcher = *grammar->make_matcher();
  grammar.reset();
  EXPECT_EQ(follow(*matcher, "ab"), 2u);
}

TEST(GrammarCompiler, SpacesOfASentencePieceVocabularyAreText) {
  const auto tokenizer = *Tokenizer::from_json(
      sentence_piece_tokenizer_json(SpaceStripping::kReplaceAndStrip),
      "tokenizer.json");
  const GrammarCompiler compiler(tokenizer, {2}, tokenizer->vocab_size());
  const auto grammar = *compiler.compile({Kind::kRegex, " ab a"});
  const auto matcher = *grammar->make_matcher();
  for (const char* const piece : {"\u2581ab", "\u2581a"}) {
    EXPECT_TRUE(matcher->accept(*tokenizer->token_to_id(piece)).is_ok());
  }
  EXPECT_TRUE(matcher->has_ended());
}

TEST(GrammarCompiler, AnEndThatIsNoSpecialTokenIsNoTextEither) {
  const GrammarCompiler compiler(tiny(), {'x'}, kVocabSize);
  const auto grammar = *compiler.compile({Kind::kRegex, "[a-z]+"});
  const auto matcher = *grammar->make_matcher();
  std::vector<uint32_t> bits(10);
  ASSERT_TRUE(matcher->mask(bits).is_ok());
  EXPECT_EQ(bits['x' / 32] >> ('x' % 32) & 1, 0u);
  EXPECT_EQ(bits['y' / 32] >> ('y' % 32) & 1, 1u);
}

} // namespace
} // namespace ingle
