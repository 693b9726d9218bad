#include "api/tool_grammar.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "api/json_reader.h"
#include "api/testing/fake_served_model.h"
#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

constexpr std::string_view kTools = R"([
  {"type":"function","function":{"name":"weather","strict":true,"parameters":
    {"type":"object","properties":{"city":{"type":"string"},
      "days":{"type":"integer"},"unit":{"enum":["C","F"]}},
     "required":["city","days"],"additionalProperties":false}}},
  {"type":"function","function":{"name":"now"}}])";

// A model whose template shows `source`, with special tokens.
ServedModel make_model(
    std::string_view source,
    const std::vector<std::string>& specials = {}) {
  ServedModel model = make_fake_model();
  model.tokenizer = *Tokenizer::from_json(
      tiny_tokenizer_json({}, specials), "tokenizer.json");
  model.vocab_size = model.tokenizer->vocab_size();
  model.eos = {kTinyImEnd};
  model.markup = find_output_markup(source, model.tokenizer.get());
  model.grammars = std::make_shared<GrammarCompiler>(
      model.tokenizer, model.eos, model.vocab_size);
  return model;
}

ChatTools tools_of(const std::string& fields, std::string_view tools) {
  const Json body = *parse_json(
      "{\"tools\":" + std::string(tools) + (fields.empty() ? "" : ",") +
      fields + "}");
  return *read_chat_tools(*JsonObject::from(body, ""));
}

bool allows(
    const ServedModel& model,
    const std::string& fields,
    std::string_view text,
    std::string_view tools = kTools,
    std::string_view prompt = "") {
  const auto grammar =
      compile_tool_choice(tools_of(fields, tools), prompt, true, model);
  EXPECT_TRUE(grammar.is_ok()) << grammar.status().message();
  EXPECT_NE(*grammar, nullptr);
  const auto matcher = *(*grammar)->make_matcher();
  const auto ids = *model.tokenizer->encode(text, false);
  for (const TokenId id : ids) {
    if (!matcher->accept(id).is_ok()) {
      return false;
    }
  }
  return matcher->is_complete();
}

const std::string kRequired = R"("tool_choice":"required")";
const std::string kNow =
    R"("tool_choice":{"type":"function","function":{"name":"now"}})";

std::string hermes(std::string_view name, std::string_view arguments) {
  return "<tool_call>\n{\"name\": \"" + std::string(name) +
      "\", \"arguments\": " + std::string(arguments) + "}\n</tool_call>";
}

TEST(ToolGrammar, ARequiredCallIsOneOfTheTools) {
  const ServedModel model = make_model("");
  const std::string good = hermes("weather", R"({"city": "Oslo", "days": 2})");
  EXPECT_TRUE(allows(model, kRequired, good));
  EXPECT_TRUE(allows(model, kRequired, hermes("now", R"({"zone": "CET"})")));
  EXPECT_FALSE(allows(model, kRequired, hermes("then", "{}")));
  EXPECT_FALSE(allows(model, kRequired, hermes("weather", R"({"days": 2})")));
  EXPECT_FALSE(allows(model, kRequired, "Rain, I think."));
  EXPECT_FALSE(allows(model, kRequired, "Well: " + good));
}

TEST(ToolGrammar, ANamedToolIsCalledOnce) {
  const ServedModel model = make_model("");
  const std::string call = hermes("now", "{}");
  EXPECT_TRUE(allows(model, kNow, call));
  EXPECT_FALSE(allows(model, kNow, call + "\n" + call));
  EXPECT_FALSE(
      allows(model, kNow, hermes("weather", R"({"city":"x","days":1})")));
}

TEST(ToolGrammar, SeveralCallsComeUnlessTheyAreForbidden) {
  const ServedModel model = make_model("");
  const std::string two = hermes("now", "{}") + "\n" + hermes("now", "{}");
  EXPECT_TRUE(allows(model, kRequired, two));
  EXPECT_FALSE(
      allows(model, kRequired + R"(,"parallel_tool_calls":false)", two));
}

TEST(ToolGrammar, WithAutoOnlyCallsAreHeldToStrictTools) {
  const ServedModel model = make_model("");
  const std::string good = hermes("weather", R"({"city": "Oslo", "days": 2})");
  const std::string bad = hermes("weather", R"({"city": "Oslo"})");
  for (const std::string fields : {"", R"("tool_choice":"auto")"}) {
    EXPECT_TRUE(allows(model, fields, "Rain, <i>I</i> think."));
    EXPECT_TRUE(allows(model, fields, good));
    EXPECT_TRUE(allows(model, fields, "Let me see.\n" + good));
    EXPECT_TRUE(allows(model, fields, hermes("now", R"({"any": [1]})")));
    EXPECT_FALSE(allows(model, fields, bad));
    EXPECT_FALSE(allows(model, fields, "Let me see.\n" + bad));
    EXPECT_FALSE(allows(model, fields, "<tool_call> is a tag"));
  }
}

TEST(ToolGrammar, WithAutoAndNoStrictToolAnythingGoes) {
  const auto grammar = compile_tool_choice(
      tools_of("", R"([{"type":"function","function":{"name":"now"}}])"),
      "",
      true,
      make_model(""));
  ASSERT_TRUE(grammar.is_ok());
  EXPECT_EQ(*grammar, nullptr);
}

TEST(ToolGrammar, WhatASchemaAsksForInVainIsLeftOutWhereItIsNotStrict) {
  const ServedModel model = make_model("");
  const std::string tools =
      R"([{"type":"function","function":{"name":"f","parameters":
        {"type":"object","properties":{"a":{"type":"integer","not":{}}},
         "required":["a"],"additionalProperties":false}}}])";
  EXPECT_TRUE(allows(model, kRequired, hermes("f", R"({"a": 1})"), tools));
  EXPECT_FALSE(allows(model, kRequired, hermes("f", "{}"), tools));
}

TEST(ToolGrammar, AStrictSchemaThatCannotBeUsedNamesItsPlace) {
  const auto grammar = compile_tool_choice(
      tools_of(kRequired, R"([{"type":"function","function":{"name":"g"}},
          {"type":"function","function":{"name":"f","strict":true,"parameters":
        {"type":"object","properties":{"a":{"not":{}}}}}}])"),
      "",
      true,
      make_model(""));
  EXPECT_EQ(grammar.status().where(), "tools[1].function.parameters");
  EXPECT_EQ(
      grammar.status().message(),
      "tools[1].function.parameters: properties.a: Unimplemented keys: "
      "[\"not\"]");
}

TEST(ToolGrammar, AToolThatIsNotThereIsRefused) {
  const ServedModel model = make_model("");
  const auto none =
      compile_tool_choice(tools_of(kRequired, "[]"), "", true, model);
  EXPECT_EQ(none.status().where(), "tool_choice");
  ChatTools tools = tools_of(kNow, kTools);
  tools.choice.name = "then";
  const auto other = compile_tool_choice(tools, "", true, model);
  EXPECT_EQ(other.status().where(), "tool_choice.function.name");
}

TEST(ToolGrammar, AThoughtComesFirst) {
  const ServedModel model = make_model("<think></think>");
  const std::string call = hermes("now", "{}");
  EXPECT_TRUE(allows(model, kNow, "<think>Hm.</think>" + call));
  EXPECT_TRUE(allows(model, kNow, call));
  EXPECT_TRUE(allows(model, kNow, "Hm.</think>" + call, kTools, "<think>\n"));
  EXPECT_FALSE(allows(model, kNow, "Hm." + call, kTools, "<think>\n"));
}

TEST(ToolGrammar, MarkersThatAreSpecialTokensAreThese) {
  const std::vector<std::string> tags = {"<tool_call>", "</tool_call>"};
  const ServedModel model = make_model("<tool_call></tool_call>", tags);
  EXPECT_TRUE(allows(model, kNow, hermes("now", "{}")));
  const std::string good = hermes("weather", R"({"city": "Oslo", "days": 2})");
  EXPECT_TRUE(allows(model, "", "Well: " + good));
  EXPECT_FALSE(allows(model, "", "Well: " + hermes("weather", "{}")));
}

TEST(ToolGrammar, Llama3CallsAreJson) {
  const ServedModel model = make_model("<|start_header_id|> \"parameters\": ");
  EXPECT_TRUE(allows(
      model,
      kRequired,
      R"({"name": "weather", "parameters": {"city": "Oslo", "days": 2}})"));
  EXPECT_FALSE(allows(model, kRequired, R"({"name": "weather"})"));
}

TEST(ToolGrammar, MistralCallsAreAListOrNamed) {
  const ServedModel list = make_model("[TOOL_CALLS]", {"[TOOL_CALLS]"});
  const std::string call = R"({"name": "now", "arguments": {}})";
  EXPECT_TRUE(allows(list, kRequired, "[TOOL_CALLS][" + call + "]"));
  EXPECT_TRUE(
      allows(list, kRequired, "[TOOL_CALLS][" + call + ", " + call + "]"));
  EXPECT_TRUE(allows(list, "", "Text."));
  EXPECT_TRUE(allows(list, "", "[TOOL_CALLS][" + call + "]"));
  const ServedModel named =
      make_model("[TOOL_CALLS][ARGS]", {"[TOOL_CALLS]", "[ARGS]"});
  EXPECT_TRUE(allows(named, kRequired, "[TOOL_CALLS]now[ARGS]{}"));
  EXPECT_TRUE(allows(
      named,
      kRequired,
      R"([TOOL_CALLS]weather[ARGS]{"city": "Oslo", "days": 2})"));
  EXPECT_FALSE(allows(named, kRequired, "[TOOL_CALLS]weather[ARGS]{}"));
}

TEST(ToolGrammar, ParametersStandInTags) {
  const ServedModel model = make_model("<tool_call><function=");
  const std::string head = "<tool_call>\n<function=weather>\n";
  const std::string city = "<parameter=city>\n\"Oslo\" <b>\n</parameter>\n";
  const std::string days = "<parameter=days>\n2\n</parameter>\n";
  const std::string unit = "<parameter=unit>\nC\n</parameter>\n";
  const std::string tail = "</function>\n</tool_call>";
  EXPECT_TRUE(allows(model, kRequired, head + city + days + tail));
  EXPECT_TRUE(allows(model, kRequired, head + city + days + unit + tail));
  EXPECT_FALSE(allows(model, kRequired, head + city + tail));
  EXPECT_FALSE(allows(
      model,
      kRequired,
      head + city + "<parameter=days>\ntwo\n</parameter>\n" + tail));
  EXPECT_TRUE(allows(model, kNow, "<tool_call>\n<function=now>\n" + tail));
}

TEST(ToolGrammar, ParametersAreElements) {
  const ServedModel model = make_model("<function name=");
  const std::string head = "<function name=\"weather\">";
  const std::string city = "<param name=\"city\">Oslo &amp; Bergen</param>";
  const std::string days = "<param name=\"days\">2</param>";
  EXPECT_TRUE(allows(model, kRequired, head + city + days + "</function>"));
  EXPECT_FALSE(allows(
      model,
      kRequired,
      head + "<param name=\"city\">Oslo & Bergen</param>" + days +
          "</function>"));
}

// What comes from outside must not take the stack, the memory or the time.
TEST(ToolGrammar, SchemasThatAreTooDeepOrTooLargeAreRefused) {
  const auto refusal = [](const ServedModel& model,
                          const std::string& properties,
                          const std::string& definitions) {
    const std::string tools =
        R"([{"type":"function","function":{"name":"f","parameters":)"
        R"({"type":"object","properties":{)" +
        properties + R"(},"$defs":{)" + definitions + "}}}}]";
    const auto grammar =
        compile_tool_choice(tools_of(kRequired, tools), "", true, model);
    EXPECT_EQ(grammar.status().reason(), "invalid_grammar");
    EXPECT_EQ(grammar.status().where(), "tools");
  };
  std::string chain; // of references
  std::string wide;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = std::to_string(i);
    chain += (i == 0 ? "\"d" : ",\"d") + name + R"(":{"$ref":"#/$defs/d)" +
        std::to_string(i + 1) + "\"}";
    wide += (i == 0 ? "\"p" : ",\"p") + name + R"(":{"type":"integer"})";
  }
  chain += R"(,"d3000":{"type":"boolean"})";
  refusal(
      make_model("<|tool_call><tool_call|><|\"|>"),
      R"("a":{"$ref":"#/$defs/d0"})",
      chain);
  const std::string text(10'000, 'x');
  refusal(
      make_model("<tool_call><function="),
      wide,
      R"("x":{"const":")" + text + "\"}");
  refusal(
      make_model(""),
      "",
      R"("x":{"const":")" + std::string(300'000, 'x') + "\"}");
}

TEST(ToolGrammar, GemmasCallsHaveBareKeys) {
  const std::vector<std::string> tags = {
      "<|tool_call>", "<tool_call|>", "<|\"|>"};
  const ServedModel model = make_model("<|tool_call><tool_call|><|\"|>", tags);
  const auto call = [](const std::string& rest) {
    return "<|tool_call>call:" + rest + "<tool_call|>";
  };
  EXPECT_TRUE(
      allows(model, kRequired, call("weather{city:<|\"|>Oslo<|\"|>,days:2}")));
  EXPECT_TRUE(allows(
      model,
      kRequired,
      call("weather{city:<|\"|>{}<|\"|>,days:2,unit:<|\"|>C<|\"|>}")));
  EXPECT_FALSE(allows(model, kRequired, call("weather{days:2}")));
  EXPECT_FALSE(allows(model, kRequired, call("weather{city:Oslo,days:2}")));
  EXPECT_TRUE(allows(model, kNow, call("now{}")));
  const std::string nested =
      R"([{"type":"function","function":{"name":"f","parameters":
        {"type":"object","properties":{
           "tree":{"$ref":"#/$defs/Tree"},
           "any":{}},
         "$defs":{"Tree":{"type":"object","properties":{
           "leaf":{"type":"boolean"},
           "kids":{"type":"array","items":{"$ref":"#/$defs/Tree"}}},
           "required":["leaf"]}}}}}])";
  EXPECT_TRUE(allows(model, kRequired, call("f{}"), nested));
  EXPECT_TRUE(allows(
      model,
      kRequired,
      call("f{tree:{leaf:true,kids:[{leaf:false}]},any:[1,{a:null}]}"),
      nested));
  EXPECT_FALSE(allows(model, kRequired, call("f{tree:{kids:[]}}"), nested));
}

} // namespace
} // namespace ingle
