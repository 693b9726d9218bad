#include "text/output_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing/routed.h"

namespace ingle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The families by what their templates show, with special tokens as their
// tokenizers have them.
OutputMarkup hermes() {
  return find_output_markup("<tool_call> {\"name\": </think>", nullptr);
}

OutputMarkup gemma() {
  OutputMarkup markup = find_output_markup("<|tool_call> <|channel>", nullptr);
  markup.special_tokens = {
      {"<|tool_call>", 48},
      {"<tool_call|>", 49},
      {"<|\"|>", 52},
      {"<|channel>", 100},
      {"<channel|>", 101}};
  return markup;
}

OutputMarkup mistral() {
  OutputMarkup markup = find_output_markup("[TOOL_CALLS] [ARGS]", nullptr);
  markup.special_tokens = {
      {"[TOOL_CALLS]", 9}, {"[ARGS]", 32}, {"[CALL_ID]", 33}};
  return markup;
}

OutputMarkup llama3() {
  return find_output_markup("<|start_header_id|> \"parameters\": ", nullptr);
}

OutputMarkup harmony() {
  OutputMarkup markup = find_output_markup("<|channel|> functions.", nullptr);
  TokenId next = 200002;
  for (const char* const marker :
       {"<|start|>",
        "<|channel|>",
        "<|message|>",
        "<|end|>",
        "<|call|>",
        "<|constrain|>"}) {
    markup.special_tokens.emplace(marker, next++);
  }
  return markup;
}

OutputRouting thoughts(bool starts_in_thought = false) {
  OutputRouting routing;
  routing.splits_thoughts = true;
  routing.starts_in_thought = starts_in_thought;
  return routing;
}

OutputRouting tools() {
  OutputRouting routing = thoughts();
  routing.tools = std::make_shared<const ToolSignatures>(ToolSignatures{
      {"weather",
       {{"city", kJsonString},
        {"days", kJsonNumber},
        {"zip", kJsonString},
        {"note", kJsonString | kJsonNull},
        {"exact", kJsonBool}}},
      {"now", {}}});
  return routing;
}

// In all cuts.
Routed routed(
    std::string_view text,
    const OutputMarkup& markup,
    const OutputRouting& routing) {
  EXPECT_EQ(find_differing_cut(text, markup, routing), "");
  return route(text, markup, routing);
}

// What a text that is no call comes to: itself.
void expect_content(
    std::string_view text,
    const OutputMarkup& markup,
    const OutputRouting& routing) {
  const Routed result = routed(text, markup, routing);
  EXPECT_EQ(result.content, text);
  EXPECT_THAT(result.calls, IsEmpty()) << text;
  EXPECT_EQ(result.reasoning, "") << text;
}

TEST(Acceptance, think_split) {
  const Routed result = routed("<think>why</think>yes", hermes(), thoughts());
  EXPECT_EQ(result.reasoning, "why");
  EXPECT_EQ(result.content, "yes");
}

TEST(Acceptance, think_primed_open) {
  const Routed result = routed("why</think>yes", hermes(), thoughts(true));
  EXPECT_EQ(result.reasoning, "why");
  EXPECT_EQ(result.content, "yes");
}

TEST(Acceptance, think_tag_split_across_chunks) {
  const auto router = make_output_router(hermes(), thoughts());
  EXPECT_EQ(router->push(0, "<thi").content, "");
  EXPECT_FALSE(router->is_thinking());
  EXPECT_EQ(router->push(0, "nk>a</th").reasoning, "a");
  EXPECT_TRUE(router->is_thinking());
  EXPECT_EQ(router->push(0, "in").reasoning, "");
  EXPECT_EQ(router->push(0, "g</thin").reasoning, "</thing");
  EXPECT_EQ(router->push(0, "k>b").content, "b");
}

TEST(Acceptance, think_disabled_passthrough) {
  expect_content("<think>why</think>yes", hermes(), OutputRouting());
  // A template without thoughts.
  expect_content(
      "<think>why</think>yes", find_output_markup("", nullptr), thoughts());
}

TEST(Thoughts, UnclosedThoughtIsReasoning) {
  const Routed result = routed("<think>why</thi", hermes(), thoughts());
  EXPECT_EQ(result.reasoning, "why</thi");
  EXPECT_EQ(result.content, "");
}

TEST(Thoughts, NothingIsTrimmed) {
  const Routed result =
      routed("<think>\nwhy\n</think>\n\nyes\n", hermes(), thoughts());
  EXPECT_EQ(result.reasoning, "\nwhy\n");
  EXPECT_EQ(result.content, "\n\nyes\n");
}

TEST(Thoughts, TagsWithinAnAnswerAreItsText) {
  expect_content("Close it: <think>x</think>, and go on", hermes(), thoughts());
  expect_content("</think> stays", hermes(), thoughts());
}

TEST(Acceptance, prompt_ends_in_open_think) {
  EXPECT_TRUE(ends_in_open_thought("<|im_start|>a\n<think>\n", hermes()));
  EXPECT_TRUE(ends_in_open_thought("<think>", hermes()));
  EXPECT_FALSE(ends_in_open_thought("a\n<think>\n\n</think>\n\n", hermes()));
  EXPECT_FALSE(ends_in_open_thought("", hermes()));
  // What a user says of it.
  EXPECT_FALSE(ends_in_open_thought("what is <think>?<|im_end|>", hermes()));
  EXPECT_FALSE(
      ends_in_open_thought("<think>", find_output_markup("", nullptr)));
}

TEST(Acceptance, gemma_channel_split) {
  const Routed result =
      routed("<|channel>thought\nwhy\n<channel|>yes", gemma(), thoughts());
  EXPECT_EQ(result.reasoning, "why\n");
  EXPECT_EQ(result.content, "yes");
}

TEST(Acceptance, gemma_empty_channel_no_leak) {
  for (const char* const text :
       {"<|channel>thought\n<channel|>yes", "<|channel><channel|>yes"}) {
    const Routed result = routed(text, gemma(), thoughts());
    EXPECT_EQ(result.reasoning, "");
    EXPECT_EQ(result.content, "yes");
  }
}

TEST(Acceptance, gemma_truncated_thought_is_reasoning) {
  EXPECT_EQ(
      routed("<|channel>thought\nwhy", gemma(), thoughts()).reasoning, "why");
  EXPECT_EQ(routed("<|channel>thou", gemma(), thoughts()), Routed());
}

TEST(Acceptance, gemma_no_channel_passthrough) {
  expect_content("yes: {a} <b>", gemma(), thoughts());
}

TEST(Acceptance, sentinel_ids_plain_elsewhere) {
  for (const OutputRouting& routing : {thoughts(), tools()}) {
    const auto router = make_output_router(hermes(), routing);
    std::string content;
    for (const TokenId id : {48, 49, 100, 101}) {
      content += router->push(id, "x").content;
    }
    EXPECT_EQ(content + router->flush().content, "xxxx");
  }
}

TEST(Families, TextThatSpellsASpecialTokenIsText) {
  const auto router = make_output_router(gemma(), tools());
  EXPECT_EQ(
      router->push(0, "<|tool_call>call:now{}").content,
      "<|tool_call>call:now{}");
}

TEST(Acceptance, mode_by_family) {
  // Gemma splits with tools and without; others buffer only with tools.
  for (const OutputRouting& routing : {thoughts(), tools()}) {
    EXPECT_EQ(
        routed("<|channel>thought\nx<channel|>", gemma(), routing).reasoning,
        "x");
  }
  expect_content(
      "<tool_call>{\"name\": \"now\"}</tool_call>", hermes(), thoughts());
  EXPECT_THAT(
      routed("<tool_call>{\"name\": \"now\"}</tool_call>", hermes(), tools())
          .calls,
      ElementsAre("now({})"));
}

TEST(Acceptance, gemma_tool_args) {
  const auto calls = [](const std::string& arguments) {
    return routed(
               "<|tool_call>call:weather{" + arguments + "}<tool_call|>",
               gemma(),
               tools())
        .calls;
  };
  EXPECT_THAT(calls(""), ElementsAre("weather({})"));
  EXPECT_THAT(
      calls("city:<|\"|>a{b}: \"c\",\n[d]<|\"|>"),
      ElementsAre(R"(weather({"city":"a{b}: \"c\",\n[d]"}))"));
  EXPECT_THAT(
      calls("days:3,exact:true,note:null,x:-1.5e3"),
      ElementsAre(
          R"(weather({"days":3,"exact":true,"note":null,"x":-1.5e3}))"));
  EXPECT_THAT(
      calls("a:{b:[1,<|\"|>two<|\"|>,{c:false}],d:{}},e:[]"),
      ElementsAre(
          R"(weather({"a":{"b":[1,"two",{"c":false}],"d":{}},"e":[]}))"));
  // Keys in quotes, JSON's quotes, and words without any.
  EXPECT_THAT(
      calls("<|\"|>city<|\"|>:\"x\\\"y\", zip : New York,days:01"),
      ElementsAre(R"(weather({"city":"x\"y","zip":"New York","days":"01"}))"));
}

TEST(GemmaCalls, SeveralOfThem) {
  EXPECT_THAT(
      routed(
          "<|tool_call>call:now{}<tool_call|><|tool_call>call:now{}call:weather"
          "{days:1}<tool_call|>",
          gemma(),
          tools())
          .calls,
      ElementsAre("now({})", "now({})", R"(weather({"days":1}))"));
}

TEST(GemmaCalls, OtherSpecialTokensInArgumentsAreText) {
  EXPECT_THAT(
      routed(
          "<|tool_call>call:now{a:<|\"|>x<channel|>y<|\"|>,b:c<|channel>}"
          "<tool_call|>",
          gemma(),
          tools())
          .calls,
      ElementsAre(R"(now({"a":"x<channel|>y","b":"c<|channel>"}))"));
}

TEST(GemmaCalls, TruncatedSegmentIsStillParsed) {
  EXPECT_THAT(
      routed("<|tool_call>call:now{}", gemma(), tools()).calls,
      ElementsAre("now({})"));
}

TEST(GemmaCalls, WhatIsNoCallIsContent) {
  for (const char* const text :
       {"<|tool_call>call:other{}<tool_call|>",
        "<|tool_call>now{}",
        "<|tool_call>call:now{a:}",
        "<|tool_call>call:now{a:1,}",
        "<|tool_call>call:now{a:[1}",
        "<|tool_call>call:now{a:<|\"|>"}) {
    expect_content(text, gemma(), tools());
  }
}

TEST(Acceptance, text_tool_json) {
  const Routed result = routed(
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"a"
      "\\\"}\", \"x\": [1, {\"y\": null}]}}\n</tool_call>",
      hermes(),
      tools());
  EXPECT_THAT(
      result.calls,
      ElementsAre(R"(weather({"city": "a\"}", "x": [1, {"y": null}]}))"));
  EXPECT_EQ(result.content, "");
}

TEST(TagCalls, KeysInAnyOrderAndOthersBeside) {
  EXPECT_THAT(
      routed(
          "<tool_call>{\"id\": 17, \"parameters\": {\"days\": 2}, \"more\": "
          "{\"a\": [1]}, \"name\": \"weather\"}</tool_call>",
          hermes(),
          tools())
          .calls,
      ElementsAre("weather({\"days\": 2})"));
}

TEST(TagCalls, LineBreaksWithinStringsAreEscaped) {
  EXPECT_THAT(
      routed(
          "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"a\nb"
          "\tc\"}}</tool_call>",
          hermes(),
          tools())
          .calls,
      ElementsAre(R"(weather({"city": "a\nb\tc"}))"));
}

TEST(TagCalls, SeveralCallsAndTheSpaceBetweenThem) {
  const Routed result = routed(
      "First.\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n"
      "</tool_call>\n<tool_call>\n{\"name\": \"now\"}\n</tool_call>\n",
      hermes(),
      tools());
  EXPECT_EQ(result.content, "First.");
  EXPECT_THAT(result.calls, ElementsAre("now({})", "now({})"));
}

TEST(TagCalls, CallBehindAThought) {
  const Routed result = routed(
      "<think>\nwhy</think>\n\n<tool_call>{\"name\": \"now\"}</tool_call>",
      hermes(),
      tools());
  EXPECT_EQ(result.reasoning, "\nwhy");
  EXPECT_EQ(result.content, "");
  EXPECT_THAT(result.calls, ElementsAre("now({})"));
}

TEST(TagCalls, MissingClosingTagAtTheEnd) {
  EXPECT_THAT(
      routed("<tool_call>{\"name\": \"now\"}", hermes(), tools()).calls,
      ElementsAre("now({})"));
  EXPECT_THAT(
      routed("<tool_call>{\"name\": \"now\"}\n</tool", hermes(), tools()).calls,
      ElementsAre("now({})"));
}

TEST(Acceptance, text_tool_xml_function) {
  for (const char* const text :
       {"<tool_call>\n<function=weather>\n<parameter=city>\nParis\n"
        "</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n"
        "</tool_call>",
        "<function=weather><parameter=city>Paris</parameter>"
        "<parameter=days>3</parameter></function>"}) {
    const Routed result = routed(text, hermes(), tools());
    EXPECT_THAT(
        result.calls, ElementsAre(R"(weather({"city": "Paris", "days": 3}))"));
    EXPECT_EQ(result.content, "");
  }
}

TEST(Acceptance, text_tool_param_cdata) {
  EXPECT_THAT(
      routed(
          "<function name=\"weather\"><param name=\"city\"><![CDATA[a </param>"
          " &amp; b]]></param><param name=\"zip\">&lt;&#65;&#x42;&gt; &amp; "
          "&unknown;</param></function>",
          hermes(),
          tools())
          .calls,
      ElementsAre(
          R"(weather({"city": "a </param> &amp; b", "zip": "<AB> & &unknown;"}))"));
}

TEST(Acceptance, text_tool_string_schema_stays_string) {
  EXPECT_THAT(
      routed(
          "<function=weather><parameter=zip>00501</parameter><parameter=city>"
          "{\"a\": 1}</parameter><parameter=days>7</parameter><parameter=exact>"
          "True</parameter><parameter=note>null</parameter><parameter=free>"
          "[1]</parameter><parameter=word>two\nlines</parameter></function>",
          hermes(),
          tools())
          .calls,
      ElementsAre(
          R"(weather({"zip": "00501", "city": "{\"a\": 1}", "days": 7, )"
          R"("exact": true, "note": null, "free": [1], "word": "two\nlines"}))"));
}

TEST(Acceptance, text_tool_unknown_name_is_content) {
  for (const char* const text :
       {"<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>",
        "<function=other><parameter=a>1</parameter></function>",
        "<function name=\"other\"></function>",
        "a <tool_call> b",
        "<tool_call><tool_call"}) {
    expect_content(text, hermes(), tools());
  }
}

TEST(TagCalls, CallBehindMarkupThatIsNone) {
  const Routed result = routed(
      "<tool_call>? <tool_call>{\"name\": \"now\"}</tool_call>",
      hermes(),
      tools());
  EXPECT_EQ(result.content, "<tool_call>?");
  EXPECT_THAT(result.calls, ElementsAre("now({})"));
}

TEST(Acceptance, tool_markup_holdback) {
  const auto router = make_output_router(hermes(), tools());
  EXPECT_EQ(router->push(0, "Let me").content, "Let me");
  EXPECT_EQ(router->push(0, " see <").content, " see");
  EXPECT_EQ(router->push(0, "b> <tool").content, " <b>");
  EXPECT_EQ(router->push(0, "_call>{\"na").content, "");
  EXPECT_EQ(router->push(0, "me\": \"other").content, "");
  EXPECT_EQ(
      router->push(0, "\"}").content, " <tool_call>{\"name\": \"other\"}");
}

TEST(TagCalls, ParseFailureReleasesEverything) {
  for (const char* const text :
       {"<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": oops}}",
        "<tool_call>{\"name\": \"now\", \"arguments\": {}} more",
        "<tool_call>{\"name\": \"now\", \"arguments\": {}, ",
        "<tool_call>{\"name\": \"now\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"arguments\": {}}</tool_call>",
        "<function=now><parameter=a>1</parameter><parameter=a>2</parameter>"
        "</function>",
        "<function=now>text</function>"}) {
    expect_content(text, hermes(), tools());
  }
}

TEST(TagCalls, ArgumentsComeAsTheyAreGenerated) {
  const auto router = make_output_router(hermes(), tools());
  EXPECT_THAT(
      router->push(0, "<tool_call>{\"name\": \"weather\"").calls, IsEmpty());
  auto parts = router->push(0, ", \"arguments\": {\"ci").calls;
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].name, "weather");
  EXPECT_EQ(parts[0].arguments, "{\"ci");
  EXPECT_EQ(parts[0].end, ToolCallPart::End::kNone);
  parts = router->push(0, "ty\": \"Par").calls;
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].name, "");
  EXPECT_EQ(parts[0].arguments, "ty\": \"Par");
  // The last brace waits for the closing tag.
  parts = router->push(0, "is\"}}\n").calls;
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].arguments, "is\"");
  parts = router->push(0, "</tool_call>").calls;
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].arguments, "}");
  EXPECT_EQ(parts[0].end, ToolCallPart::End::kWhole);
}

TEST(TagCalls, VoidCallHasNoValidArgumentsAndItsTextIsContent) {
  const std::string text =
      "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1}} but";
  const Routed result = routed(text, hermes(), tools());
  EXPECT_THAT(result.voids, ElementsAre("now({\"a\": 1)"));
  EXPECT_EQ(result.content, text);
}

TEST(TagCalls, OneCallEndsTheAnswer) {
  OutputRouting routing = tools();
  routing.one_call = true;
  const std::string text =
      "<tool_call>{\"name\": \"now\"}</tool_call> more <tool_call>{\"name\": "
      "\"now\"}</tool_call>";
  const Routed result = routed(text, hermes(), routing);
  EXPECT_THAT(result.calls, ElementsAre("now({})"));
  EXPECT_EQ(result.content, "");
}

TEST(LlamaCalls, BareJsonIsACall) {
  for (
      const char* const text :
      {R"({"name": "weather", "parameters": {"days": 1}})",
       R"( {"type": "function", "name": "weather", "parameters": {"days": 1}} )",
       R"(<|python_tag|>{"name": "weather", "arguments": {"days": 1}})"}) {
    const Routed result = routed(text, llama3(), tools());
    EXPECT_THAT(result.calls, ElementsAre(R"(weather({"days": 1}))")) << text;
    EXPECT_EQ(result.content, "");
  }
  EXPECT_THAT(
      routed(R"({"name": "now"}; {"name": "now"})", llama3(), tools()).calls,
      ElementsAre("now({})", "now({})"));
}

TEST(LlamaCalls, OtherJsonIsContent) {
  for (const char* const text :
       {R"({"answer": 42})",
        R"({"name": "Ada", "age": 36})",
        R"({"name": "now"} is how)",
        R"(It is {"name": "now"})"}) {
    expect_content(text, llama3(), tools());
  }
}

TEST(MistralCalls, ListOfThem) {
  const Routed result = routed(
      R"(Well. [TOOL_CALLS] [{"name": "now", "arguments": {}}, )"
      R"({"name": "weather", "arguments": {"days": 2}, "id": "abcdefghi"}])",
      mistral(),
      tools());
  EXPECT_THAT(result.calls, ElementsAre("now({})", R"(weather({"days": 2}))"));
  EXPECT_EQ(result.content, "Well.");
}

TEST(MistralCalls, NamesWithArguments) {
  EXPECT_THAT(
      routed(
          R"([TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]weather[CALL_ID]123456789)"
          R"([ARGS]{"days": 2})",
          mistral(),
          tools())
          .calls,
      ElementsAre("now({})", R"(weather({"days": 2}))"));
  // Where the tokenizer has no such special tokens.
  EXPECT_THAT(
      routed(
          R"([TOOL_CALLS]now[ARGS]{})",
          find_output_markup("[TOOL_CALLS] [ARGS]", nullptr),
          tools())
          .calls,
      ElementsAre("now({})"));
  expect_content("[TOOL_CALLS]other[ARGS]{}", mistral(), tools());
}

TEST(Harmony, ChannelsAreThoughtsContentAndCalls) {
  const Routed result = routed(
      "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>"
      "commentary<|message|>Looking. <|end|><|start|>assistant<|channel|>"
      "commentary to=functions.weather <|constrain|>json<|message|>{\"days\": "
      "3}<|call|>",
      harmony(),
      tools());
  EXPECT_EQ(result.reasoning, "why");
  EXPECT_EQ(result.content, "Looking. ");
  EXPECT_THAT(result.calls, ElementsAre(R"(weather({"days": 3}))"));
}

TEST(Harmony, CallAsTheTemplateWritesIt) {
  const OutputMarkup markup = harmony();
  EXPECT_THAT(
      routed(
          markup.tools.begin + "now" + markup.tools.after_name + "{}" +
              markup.tools.end,
          markup,
          tools())
          .calls,
      ElementsAre("now({})"));
}

TEST(Harmony, FinalIsContentAndSoIsWhatHasNoHeader) {
  EXPECT_EQ(
      routed("<|channel|>final<|message|>yes", harmony(), thoughts()).content,
      "yes");
  EXPECT_EQ(routed("{\"a\": 1}", harmony(), thoughts()).content, "{\"a\": 1}");
}

TEST(Harmony, CallThatIsNoneIsContent) {
  const Routed result = routed(
      " to=functions.now<|channel|>commentary<|message|>{\"a\": oops<|call|>",
      harmony(),
      tools());
  EXPECT_THAT(result.calls, IsEmpty());
  EXPECT_EQ(
      result.content,
      " to=functions.now<|channel|>commentary<|message|>{\"a\": oops");
}

// The router reads what a grammar would force.
TEST(Families, EveryMarkupsOwnFormIsACall) {
  for (const OutputMarkup& markup :
       {hermes(),
        llama3(),
        mistral(),
        gemma(),
        harmony(),
        find_output_markup("[TOOL_CALLS][", nullptr),
        find_output_markup("<tool_call> <function=", nullptr),
        find_output_markup("<function name=", nullptr)}) {
    const ToolMarkup& form = markup.tools;
    const std::string empty = form.arguments == ArgumentSyntax::kJson ||
            form.arguments == ArgumentSyntax::kGemma
        ? "{}"
        : "";
    const std::string call =
        form.begin + "now" + form.after_name + empty + form.end;
    std::string text = form.prefix + call;
    std::vector<std::string> expected = {"now({})"};
    if (form.allows_several) {
      text += form.between + call;
      expected.emplace_back("now({})");
    }
    const Routed result = routed(text + form.suffix, markup, tools());
    EXPECT_EQ(result.calls, expected) << text;
    EXPECT_EQ(result.content, "") << text;
  }
}

} // namespace
} // namespace ingle
