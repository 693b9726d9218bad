#include "text/output_markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A call as the markup has it, with `name` and `arguments` put in.
std::string call_in(
    const ToolMarkup& markup,
    std::string_view name,
    std::string_view arguments) {
  std::string text = markup.prefix + markup.begin;
  text.append(name).append(markup.after_name).append(arguments);
  return text + markup.end + markup.suffix;
}

std::string call_of(std::string_view source, std::string_view arguments) {
  return call_in(find_output_markup(source, nullptr).tools, "f", arguments);
}

// The lines are those of the families' templates.
TEST(OutputMarkup, CallsAreWrittenAsTheTemplateShows) {
  EXPECT_EQ(
      call_of(R"({{- '<tool_call>\n{"name": "' }})", "{}"),
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
  EXPECT_EQ(
      call_of(
          "'\\n<tool_call>\\n<function=' + tool_call.name + '>\\n'",
          "<parameter=a>\n1\n</parameter>\n"),
      "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n"
      "</function>\n</tool_call>");
  EXPECT_EQ(
      call_of("'<function name=\"' ~ name", "<param name=\"a\">1</param>"),
      "<function name=\"f\"><param name=\"a\">1</param></function>");
  EXPECT_EQ(
      call_of("<|start_header_id|> '\"parameters\": '", "{}"),
      "{\"name\": \"f\", \"parameters\": {}}");
  EXPECT_EQ(
      call_of("'[TOOL_CALLS]['", "{}"),
      "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]");
  EXPECT_EQ(
      call_of("'[TOOL_CALLS]' + name + '[ARGS]'", "{}"),
      "[TOOL_CALLS]f[ARGS]{}");
  EXPECT_EQ(
      call_of("'<|tool_call>call:' + function['name']", "{a:1}"),
      "<|tool_call>call:f{a:1}<tool_call|>");
  EXPECT_EQ(
      call_of("\"functions.\" + name + \"<|channel|>commentary \"", "{}"),
      " to=functions.f<|channel|>commentary json<|message|>{}<|call|>");
}

TEST(OutputMarkup, TemplateThatShowsNoCallsHasThoseThatMostModelsKnow) {
  const OutputMarkup markup = find_output_markup("", nullptr);
  EXPECT_EQ(
      call_in(markup.tools, "f", "{}"),
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
  EXPECT_FALSE(markup.thought);
  EXPECT_THAT(markup.special_tokens, IsEmpty());
}

TEST(OutputMarkup, ThoughtsAreThoseOfTheTemplate) {
  const auto open_of = [](std::string_view source) {
    const auto thought = find_output_markup(source, nullptr).thought;
    return thought ? thought->open : "none";
  };
  EXPECT_EQ(open_of("content.split('</think>')"), "<think>\n");
  EXPECT_EQ(open_of("'[THINK]' + block['thinking']"), "[THINK]");
  EXPECT_EQ(open_of("'<|tool_call>' '<|channel>'"), "<|channel>thought\n");
  EXPECT_EQ(
      open_of("functions. <|channel|>"), "<|channel|>analysis<|message|>");
  EXPECT_EQ(open_of("no thoughts"), "none");
}

TEST(OutputMarkup, OnlySpecialTokensAreTakenByTheirIds) {
  const auto tokenizer = Tokenizer::from_json(
      tiny_tokenizer_json({}, {"[TOOL_CALLS]", "<|\"|>"}), "tokenizer.json");
  ASSERT_TRUE(tokenizer.is_ok()) << tokenizer.status().message();
  EXPECT_THAT(
      find_output_markup("[TOOL_CALLS] [ARGS] <think>", tokenizer->get())
          .special_tokens,
      ElementsAre(Pair("[TOOL_CALLS]", kTinyVocabSize)));
  // What the template doesn't show is no markup of the model's.
  EXPECT_THAT(
      find_output_markup("<think>", tokenizer->get()).special_tokens,
      IsEmpty());
}

} // namespace
} // namespace ingle
