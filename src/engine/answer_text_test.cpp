#include "engine/answer_text.h"

#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

constexpr char kCall[] = "<tool_call>{\"name\": \"now\"}</tool_call>";

class AnswerTextTest : public ::testing::Test {
 protected:
  AnswerTextTest() {
    auto tokenizer = Tokenizer::from_json(
        tiny_tokenizer_json({}, {"<|tool_call>", "<tool_call|>"}),
        "tokenizer.json");
    EXPECT_TRUE(tokenizer.is_ok());
    model_.tokenizer = tokenizer.value();
    show("<tool_call> </think>");
    route(/*one_call=*/false);
  }

  void route(bool one_call) {
    OutputRouting routing;
    routing.splits_thoughts = true;
    routing.tools =
        std::make_shared<const ToolSignatures>(ToolSignatures{{"now", {}}});
    routing.one_call = one_call;
    request_.routing = std::make_shared<const OutputRouting>(routing);
  }

  // The model has a template with this text in it.
  void show(std::string_view source) {
    model_.markup = find_output_markup(source, model_.tokenizer.get());
  }

  // What the text's bytes, one token each, came to.
  GenerationDelta answer(std::string_view text) {
    AnswerText answer(request_, model_);
    GenerationDelta all;
    for (const char c : text) {
      if (!answer.is_over()) {
        GenerationDelta delta;
        const auto token = static_cast<TokenId>(static_cast<unsigned char>(c));
        EXPECT_TRUE(answer.push(token, may_stop_, delta).is_ok());
        add(all, delta);
      }
    }
    reasoning_tokens_ = answer.reasoning_tokens();
    add(all, answer.flush());
    is_over_ = answer.is_over();
    has_calls_ = answer.has_calls();
    return all;
  }

  static void add(GenerationDelta& all, const GenerationDelta& delta) {
    all.text += delta.text;
    all.reasoning += delta.reasoning;
    all.tool_calls.insert(
        all.tool_calls.end(), delta.tool_calls.begin(), delta.tool_calls.end());
  }

  ServedModel model_;
  GenerationRequest request_;
  bool may_stop_ = true;
  int reasoning_tokens_ = 0;
  bool is_over_ = false;
  bool has_calls_ = false;
};

TEST_F(AnswerTextTest, WithoutRoutingAllTextIsContent) {
  request_.routing.reset();
  EXPECT_EQ(answer(kCall).text, kCall);
  EXPECT_EQ(answer("<think>a</think>").text, "<think>a</think>");
  EXPECT_FALSE(has_calls_);
}

TEST_F(AnswerTextTest, StopStringsSeeContentAlone) {
  request_.stop = {"now", "why"};
  const GenerationDelta delta =
      answer("<think>why</think>" + std::string(kCall));
  EXPECT_EQ(delta.reasoning, "why");
  EXPECT_EQ(delta.text, "");
  EXPECT_TRUE(has_calls_);
  EXPECT_FALSE(is_over_);
}

TEST_F(AnswerTextTest, BehindAStopStringNothingIsToldThatWasHeldBack) {
  request_.stop = {"."};
  const GenerationDelta delta = answer("Yes. " + std::string(kCall));
  EXPECT_EQ(delta.text, "Yes");
  EXPECT_TRUE(delta.tool_calls.empty());
  EXPECT_TRUE(is_over_);
}

TEST_F(AnswerTextTest, StopStringInWhatWasHeldBackIsFound) {
  request_.stop = {"<tool"};
  EXPECT_EQ(answer("a<tool_ca").text, "a");
  EXPECT_TRUE(is_over_);
}

TEST_F(AnswerTextTest, BeforeMinTokensStopStringsAreText) {
  request_.stop = {"b"};
  may_stop_ = false;
  EXPECT_EQ(answer("abc").text, "abc");
  EXPECT_FALSE(is_over_);
}

TEST_F(AnswerTextTest, ReasoningTokensAreThoseOfThoughtsWithTheirTags) {
  answer("<think>abc</think>de");
  // The tag opens with its last character.
  EXPECT_EQ(reasoning_tokens_, 1 + 3 + 8);
  answer("de");
  EXPECT_EQ(reasoning_tokens_, 0);
}

TEST_F(AnswerTextTest, TheOneCallEndsTheAnswer) {
  route(/*one_call=*/true);
  EXPECT_EQ(answer(std::string(kCall) + "text").text, "");
  EXPECT_TRUE(is_over_);
  EXPECT_TRUE(has_calls_);
}

TEST_F(AnswerTextTest, SpecialTokensOfTheMarkupAreDecoded) {
  show("<|tool_call> <tool_call|>");
  ASSERT_EQ(model_.markup.special_tokens.size(), 2U);
  AnswerText answer(request_, model_);
  GenerationDelta delta;
  const auto push = [&](TokenId token) {
    EXPECT_TRUE(answer.push(token, true, delta).is_ok());
  };
  push('a');
  push(kTinyImEnd); // special, and none of the markup
  push(kTinyVocabSize);
  for (const char c : std::string_view("call:now{}")) {
    push(c);
  }
  EXPECT_FALSE(answer.has_calls());
  push(kTinyVocabSize + 1);
  EXPECT_TRUE(answer.has_calls());
  EXPECT_EQ(delta.text, "a");
}

TEST_F(AnswerTextTest, TokensWithoutTextAndModelsWithoutTokenizer) {
  AnswerText answer(request_, model_);
  GenerationDelta delta;
  EXPECT_TRUE(answer.push(5000, true, delta).is_ok());
  EXPECT_FALSE(delta.has_text());
  model_.tokenizer = nullptr;
  AnswerText ids(request_, model_);
  EXPECT_TRUE(ids.push('a', true, delta).is_ok());
  EXPECT_FALSE(delta.has_text());
}

} // namespace
} // namespace ingle
