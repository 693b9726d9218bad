#include "api/chat_request.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

std::string with_user_message(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}";
}

ChatRequest parse(const std::string& body) {
  auto request = parse_chat_request(body);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  return request.is_ok() ? *std::move(request) : ChatRequest();
}

TEST(ChatRequest, ReadsEveryKnob) {
  const ChatRequest request = parse(with_user_message(
      R"(,"model":"any","stream":true,"stream_options":{"include_usage":true},
      "max_tokens":5,"max_completion_tokens":7,"temperature":0.5,"top_p":0.9,
      "top_k":40,"seed":-2,"stop":["a","b"],"n":1,"logprobs":false,
      "response_format":{"type":"text"},"frequency_penalty":0,"user":"u")"));
  EXPECT_TRUE(request.options.stream);
  EXPECT_TRUE(request.options.include_usage);
  EXPECT_EQ(request.options.max_tokens, 7);
  EXPECT_EQ(request.options.temperature, 0.5f);
  EXPECT_EQ(request.options.top_p, 0.9f);
  EXPECT_EQ(request.options.top_k, 40);
  EXPECT_EQ(request.options.seed, ~uint64_t{1});
  EXPECT_EQ(request.options.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.messages, R"([{"role":"user","content":"hi"}])");
}

TEST(ChatRequest, MinusOneLeavesAKnobUnset) {
  const RequestOptions options =
      parse(with_user_message(
                R"(,"max_tokens":-1,"max_completion_tokens":-1,"top_k":-1,)"
                R"("seed":-1)"))
          .options;
  EXPECT_EQ(options.max_tokens, std::nullopt);
  EXPECT_EQ(options.top_k, std::nullopt);
  EXPECT_EQ(options.seed, std::nullopt);
  EXPECT_EQ(
      parse(with_user_message(R"(,"max_tokens":4,"max_completion_tokens":-1)"))
          .options.max_tokens,
      4);
}

TEST(ChatRequest, KnobsThatIngleLacksMayBeNeutral) {
  parse(with_user_message(
      R"(,"frequency_penalty":0,"presence_penalty":0.0,"min_p":0,
      "repetition_penalty":1,"xtc_probability":0,"logit_bias":{},
      "tool_choice":"auto")"));
  parse(with_user_message(
      R"(,"frequency_penalty":null,"presence_penalty":null,"min_p":null,
      "repetition_penalty":null,"xtc_probability":null,"logit_bias":null,
      "tool_choice":null)"));
}

TEST(ChatRequest, KnobsThatIngleLacksAreRefused) {
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"frequency_penalty", "0.5"},
           {"presence_penalty", "-1"},
           {"repetition_penalty", "1.1"},
           {"repetition_penalty", "0"},
           {"min_p", "0.05"},
           {"xtc_probability", "0.1"},
           {"logit_bias", R"({"5":1})"},
           {"tool_choice", "\"required\""},
           {"tool_choice", R"({"type":"function","function":{"name":"f"}})"}}) {
    const Status refused =
        parse_chat_request(with_user_message(",\"" + field + "\":" + value))
            .status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidRequest) << field;
    EXPECT_EQ(refused.reason(), "unsupported_parameter") << field;
    EXPECT_EQ(refused.where(), field);
  }
}

TEST(ChatRequest, NullsAndUnknownFieldsAreIgnored) {
  const ChatRequest request = parse(with_user_message(
      R"(,"stop":null,"max_tokens":null,"temperature":null,"stream":null,
      "stream_options":null,"tools":null,"foo":{"bar":[1]})"));
  EXPECT_EQ(request.options.max_tokens, std::nullopt);
  EXPECT_TRUE(request.options.stop.empty());
  EXPECT_TRUE(request.tools.empty());
}

TEST(ChatRequest, MessagesTakeTheFormTemplatesExpect) {
  const ChatRequest request = parse(
      R"({"messages":[
      {"role":"developer","content":[{"type":"text","text":"be "},
        {"type":"text","text":"brief"}]},
      {"role":"user","content":"hi","name":"ann"},
      {"role":"assistant","content":null,"tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f",
          "arguments":"{\"z\":1,\"a\":2}"}},
        {"id":"c2","type":"function","function":{"name":"g",
          "arguments":""}},
        {"id":"c3","type":"function","function":{"name":"h",
          "arguments":"broken"}}]},
      {"role":"tool","tool_call_id":"c1","content":"3"}]})");
  EXPECT_EQ(
      request.messages,
      R"([{"role":"system","content":"be brief"},)"
      R"({"role":"user","content":"hi","name":"ann"},)"
      R"({"role":"assistant","content":null,"tool_calls":[)"
      R"({"id":"c1","type":"function","function":{"name":"f",)"
      R"("arguments":{"z":1,"a":2}}},)"
      R"({"id":"c2","type":"function","function":{"name":"g",)"
      R"("arguments":{}}},)"
      R"({"id":"c3","type":"function","function":{"name":"h",)"
      R"("arguments":"broken"}}]},)"
      R"({"role":"tool","tool_call_id":"c1","content":"3"}])");
}

TEST(ChatRequest, ToolsPassThroughInTheirOrder) {
  const std::string tools =
      R"([{"type":"function","function":{"name":"f","description":"d"}}])";
  EXPECT_EQ(parse(with_user_message(",\"tools\":" + tools)).tools, tools);
  EXPECT_EQ(
      parse(
          with_user_message(",\"tools\":" + tools + R"(,"tool_choice":"none")"))
          .tools,
      "");
}

struct BadBody {
  std::string body;
  const char* where;
  const char* message;
};

class ChatRequestRefuses : public testing::TestWithParam<BadBody> {};

TEST_P(ChatRequestRefuses, NamingThePlace) {
  const auto request = parse_chat_request(GetParam().body);
  ASSERT_FALSE(request.is_ok());
  EXPECT_EQ(request.status().code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(request.status().where(), GetParam().where);
  EXPECT_EQ(request.status().message(), GetParam().message);
}

constexpr const char* kUnknownRole =
    "messages[0].role: expected \"system\", \"developer\", \"user\", "
    "\"assistant\" or \"tool\"";

constexpr const char* kToolChoice =
    "tool_choice: expected \"none\", \"auto\", \"required\" or an object that "
    "names a tool";

INSTANTIATE_TEST_SUITE_P(
    Bodies,
    ChatRequestRefuses,
    testing::Values(
        BadBody{"[]", "", "the body: expected an object, got an array"},
        BadBody{"{}", "messages", "messages: is required"},
        BadBody{
            R"({"messages":[]})",
            "messages",
            "messages: at least one message is required"},
        BadBody{
            R"({"messages":"hi"})",
            "messages",
            "messages: expected an array, got a string"},
        BadBody{
            R"({"messages":["hi"]})",
            "messages[0]",
            "messages[0]: expected an object, got a string"},
        BadBody{
            R"({"messages":[{"role":"robot","content":"x"}]})",
            "messages[0].role",
            kUnknownRole},
        BadBody{
            R"({"messages":[{"content":"x"}]})",
            "messages[0].role",
            kUnknownRole},
        BadBody{
            R"({"messages":[{"role":"user"}]})",
            "messages[0].content",
            "messages[0].content: is required"},
        BadBody{
            R"({"messages":[{"role":"user","content":null}]})",
            "messages[0].content",
            "messages[0].content: expected a string or an array of text "
            "parts, got null"},
        BadBody{
            R"({"messages":[{"role":"user","content":3}]})",
            "messages[0].content",
            "messages[0].content: expected a string or an array of text "
            "parts, got a number"},
        BadBody{
            R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
            "messages[0].content[0].type",
            "messages[0].content[0].type: only \"text\" parts are supported"},
        BadBody{
            R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})",
            "messages[0].content[0].text",
            "messages[0].content[0].text: is required"},
        BadBody{
            R"({"messages":[{"role":"assistant","content":"",
                "tool_calls":[{"function":{"name":1}}]}]})",
            "messages[0].tool_calls[0].function.name",
            "messages[0].tool_calls[0].function.name: expected a string, got "
            "a number"},
        BadBody{
            with_user_message(R"(,"temperature":"hot")"),
            "temperature",
            "temperature: expected a number from 0 to 2, got a string"},
        BadBody{
            with_user_message(R"(,"temperature":2.5)"),
            "temperature",
            "temperature: expected a number from 0 to 2, got 2.5"},
        BadBody{
            with_user_message(R"(,"top_p":-0.5)"),
            "top_p",
            "top_p: expected a number from 0 to 1, got -0.5"},
        BadBody{
            with_user_message(R"(,"max_tokens":0)"),
            "max_tokens",
            "max_tokens: expected an integer from 1 to 2147483647, got 0"},
        BadBody{
            with_user_message(R"(,"max_completion_tokens":1.5)"),
            "max_completion_tokens",
            "max_completion_tokens: expected an integer from 1 to 2147483647, "
            "got 1.5"},
        BadBody{
            with_user_message(R"(,"seed":"7")"),
            "seed",
            "seed: expected an integer, got a string"},
        BadBody{
            with_user_message(R"(,"stream":"yes")"),
            "stream",
            "stream: expected a boolean, got a string"},
        BadBody{
            with_user_message(R"(,"stop":["a",1])"),
            "stop[1]",
            "stop[1]: expected a string, got a number"},
        BadBody{
            with_user_message(R"(,"stop":5)"),
            "stop",
            "stop: expected a string or an array of strings, got a number"},
        BadBody{
            with_user_message(
                R"(,"stop":["","","","","","","","","","","","","","","","",""])"),
            "stop",
            "stop: at most 16 strings, got 17"},
        BadBody{
            with_user_message(R"(,"n":2)"),
            "n",
            "n: more than one choice is not supported yet"},
        BadBody{
            with_user_message(R"(,"logprobs":true)"),
            "logprobs",
            "logprobs: asking for log-probabilities is not supported yet"},
        BadBody{
            with_user_message(R"(,"response_format":{"type":"json_object"})"),
            "response_format.type",
            "response_format.type: a format other than \"text\" is not "
            "supported yet"},
        BadBody{
            with_user_message(R"(,"tools":{})"),
            "tools",
            "tools: expected an array, got an object"},
        BadBody{
            with_user_message(R"(,"tools":[{},"f"])"),
            "tools[1]",
            "tools[1]: expected an object, got a string"},
        BadBody{
            with_user_message(R"(,"tool_choice":"sometimes")"),
            "tool_choice",
            kToolChoice},
        BadBody{
            with_user_message(R"(,"tool_choice":{})"),
            "tool_choice",
            kToolChoice},
        BadBody{
            with_user_message(R"(,"min_p":"low")"),
            "min_p",
            "min_p: expected a number from 0 to 1, got a string"},
        BadBody{
            with_user_message(R"(,"repetition_penalty":1.5)"),
            "repetition_penalty",
            "repetition_penalty: a value other than 1 is not supported yet"},
        BadBody{
            with_user_message(R"(,"logit_bias":[])"),
            "logit_bias",
            "logit_bias: expected an object, got an array"},
        BadBody{
            with_user_message(R"(,"top_k":-2)"),
            "top_k",
            "top_k: expected an integer from 0 to 2147483647, got -2"},
        BadBody{
            with_user_message(R"(,"chat_template_kwargs":[])"),
            "chat_template_kwargs",
            "chat_template_kwargs: expected an object, got an array"},
        BadBody{
            with_user_message(R"(,"model":3)"),
            "model",
            "model: expected a string, got a number"}));

} // namespace
} // namespace ingle
