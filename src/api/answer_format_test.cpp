#include "api/answer_format.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "api/prompt.h"
#include "api/testing/fake_served_model.h"
#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

constexpr std::string_view kSchema =
    R"({"type":"object","properties":{"age":{"type":"integer"}},)"
    R"("required":["age"],"additionalProperties":false})";

// A model with grammars, whose chat prompt is `prompt`.
ServedModel make_model(const std::string& prompt = "hi") {
  ServedModel model = make_fake_model();
  model.tokenizer = *Tokenizer::from_json(
      tiny_tokenizer_json({}, {"<end-of-thought>"}), "tokenizer.json");
  model.vocab_size = model.tokenizer->vocab_size();
  model.eos = {kTinyImEnd};
  model.chat_template = std::make_shared<FakeChatTemplate>(prompt);
  model.grammars = std::make_shared<GrammarCompiler>(
      model.tokenizer, model.eos, model.vocab_size);
  return model;
}

Result<GenerationRequest> chat(
    const ServedModel& model,
    const std::string& fields) {
  auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":"hi"}],)" + fields + "}",
      model.defaults);
  return request.is_ok() ? make_generation(*request, model) : request.status();
}

// Whether the text is a whole answer to a chat request with these fields.
bool allows(
    const ServedModel& model,
    const std::string& fields,
    std::string_view text) {
  const auto generation = chat(model, fields);
  EXPECT_TRUE(generation.is_ok()) << generation.status().message();
  EXPECT_NE(generation->grammar, nullptr);
  const auto matcher = *generation->grammar->make_matcher();
  const auto ids = *model.tokenizer->encode(text, false);
  for (const TokenId id : ids) {
    if (!matcher->accept(id).is_ok()) {
      return false;
    }
  }
  return matcher->is_complete();
}

TEST(AnswerFormat, TextIsNoFormat) {
  const auto generation = chat(make_model(), R"("response_format":null)");
  EXPECT_EQ(generation->grammar, nullptr);
  const auto text = chat(make_model(), R"("response_format":{"type":"text"})");
  EXPECT_EQ(text->grammar, nullptr);
}

TEST(AnswerFormat, JsonObjectIsAnyObject) {
  const std::string fields = R"("response_format":{"type":"json_object"})";
  EXPECT_TRUE(allows(make_model(), fields, R"({"a": [1]})"));
  EXPECT_FALSE(allows(make_model(), fields, "[1]"));
}

TEST(AnswerFormat, JsonSchemaIsFollowed) {
  const std::string fields =
      R"("response_format":{"type":"json_schema","json_schema":)"
      R"({"name":"x","strict":true,"schema":)" +
      std::string(kSchema) + "}}";
  EXPECT_TRUE(allows(make_model(), fields, R"({"age": 7})"));
  EXPECT_FALSE(allows(make_model(), fields, R"({"age": "x"})"));
}

TEST(AnswerFormat, GuidedFieldsAreFormats) {
  const ServedModel model = make_model();
  const std::string schema(kSchema);
  EXPECT_TRUE(allows(model, "\"guided_json\":" + schema, R"({"age": 7})"));
  EXPECT_FALSE(allows(model, "\"guided_json\":" + schema, "{}"));
  EXPECT_TRUE(allows(model, R"("guided_json":"{\"const\":5}")", "5"));
  EXPECT_TRUE(allows(model, R"("guided_regex":"a+b")", "aab"));
  EXPECT_TRUE(allows(model, R"("guided_choice":["yes","no"])", "no"));
  EXPECT_FALSE(allows(model, R"("guided_choice":["yes","no"])", "maybe"));
  for (const std::string field : {"guided_grammar", "grammar"}) {
    const std::string fields =
        "\"" + field + R"(":"start: \"a\" start | \"b\"")";
    EXPECT_TRUE(allows(model, fields, "aab"));
    EXPECT_FALSE(allows(model, fields, "aa"));
  }
}

TEST(AnswerFormat, TextCompletionsHaveThemToo) {
  const auto request =
      parse_completion_request(R"({"prompt":"x","guided_regex":"[0-9]"})", {});
  ASSERT_TRUE(request.is_ok());
  const auto generation =
      make_generation(*request, request->prompts.front(), make_model());
  ASSERT_TRUE(generation.is_ok());
  EXPECT_NE(generation->grammar, nullptr);
}

TEST(AnswerFormat, ASchemaThatCannotBeUsedNamesPathAndKeyword) {
  const auto generation = chat(
      make_model(),
      R"("response_format":{"type":"json_schema","json_schema":{"schema":)"
      R"({"properties":{"a":{"items":{"not":{}}}}}}})");
  const Status status = generation.status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(status.where(), "response_format.json_schema.schema");
  EXPECT_EQ(status.reason(), "invalid_grammar");
  EXPECT_EQ(
      status.message(),
      "response_format.json_schema.schema: properties.a.items: Unimplemented "
      "keys: [\"not\"]");
}

TEST(AnswerFormat, ABadRegexNamesItsField) {
  const Status status = chat(make_model(), R"("guided_regex":"(")").status();
  EXPECT_EQ(status.where(), "guided_regex");
  EXPECT_NE(status.message().find("unclosed group"), std::string::npos);
}

TEST(AnswerFormat, AModelWithoutTokenizerHasNone) {
  ServedModel model = make_model();
  model.grammars = nullptr;
  EXPECT_EQ(
      chat(model, R"("guided_regex":"a")").status().reason(), "no_tokenizer");
}

// A model that thinks between tags.
ServedModel thinker(const std::string& prompt) {
  ServedModel model = make_model(prompt);
  model.markup.thought = {"<think>\n", "\n</think>\n\n"};
  return model;
}

TEST(AnswerFormat, AThoughtThatThePromptBeganComesFirst) {
  const std::string fields = R"("guided_choice":["yes","no"])";
  const ServedModel model = thinker("<think>x</think> assistant: <think>\n");
  EXPECT_TRUE(allows(model, fields, "Hm, no.\n</think>yes"));
  EXPECT_FALSE(allows(model, fields, "yes"));
}

TEST(AnswerFormat, AThoughtMayBeBegunOrLeftOut) {
  const std::string fields = R"("guided_choice":["yes","no"])";
  const ServedModel model = thinker("<think>x</think> assistant:");
  EXPECT_TRUE(allows(model, fields, "<think>\nHm.</think>yes"));
  EXPECT_TRUE(allows(model, fields, "yes"));
}

TEST(AnswerFormat, WithoutThinkingTheAnswerComesAtOnce) {
  const std::string fields = R"("guided_choice":["yes","no"])";
  const std::string off =
      R"(,"chat_template_kwargs":{"enable_thinking":false})";
  const ServedModel over = thinker("assistant: <think>\n\n</think>\n\n");
  EXPECT_TRUE(allows(over, fields, "yes"));
  EXPECT_FALSE(allows(over, fields, "<think>Hm.</think>yes"));
  const ServedModel open = thinker("assistant:");
  EXPECT_FALSE(allows(open, fields + off, "<think>Hm.</think>yes"));
}

TEST(AnswerFormat, AThoughtMayEndInASpecialToken) {
  ServedModel model = thinker("<think>");
  model.markup.thought = {"<think>", "<end-of-thought>"};
  const TokenId end = *model.tokenizer->token_to_id("<end-of-thought>");
  model.markup.special_tokens = {{"<end-of-thought>", end}};
  const std::string fields = R"("guided_choice":["yes","no"])";
  EXPECT_TRUE(allows(model, fields, "Hm.<end-of-thought>yes"));
  EXPECT_FALSE(allows(model, fields, "Hm.yes"));
}

} // namespace
} // namespace ingle
