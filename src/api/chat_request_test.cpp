#include "api/chat_request.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

std::string with_user_message(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}";
}

ChatRequest parse(const std::string& body) {
  auto request = parse_chat_request(body, GenerationDefaults());
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  return request.is_ok() ? *std::move(request) : ChatRequest();
}

TEST(ChatRequest, ReadsEveryKnob) {
  const ChatRequest request = parse(with_user_message(
      R"(,"model":"any","stream":true,"stream_options":{"include_usage":true},
      "max_tokens":5,"max_completion_tokens":7,"min_tokens":3,"n":2,
      "temperature":0.5,"top_p":0.9,"min_p":0.05,"top_k":40,"seed":-2,
      "xtc_probability":0.25,"xtc_threshold":0.125,"logit_bias":{"5":-100,"0":2},
      "repetition_penalty":1.5,"repetition_context_size":0,
      "presence_penalty":-0.5,"presence_context_size":7,
      "frequency_penalty":2,"frequency_context_size":9,
      "stop":["a","b"],"ignore_eos":true,"cache":false,"return_progress":true,
      "logprobs":true,"top_logprobs":20,
      "response_format":{"type":"text"},"user":"u")"));
  EXPECT_EQ(request.messages, R"([{"role":"user","content":"hi"}])");
  const RequestOptions& options = request.options;
  EXPECT_TRUE(options.stream);
  EXPECT_TRUE(options.include_usage);
  EXPECT_TRUE(options.return_progress);
  EXPECT_EQ(options.max_tokens, 7);
  EXPECT_EQ(options.min_tokens, 3);
  EXPECT_EQ(options.n, 2);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.ignore_eos);
  EXPECT_FALSE(options.use_cache);
  EXPECT_EQ(options.top_logprobs, 20);
  const SamplingParams& sampling = options.sampling;
  EXPECT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_p, 0.9f);
  EXPECT_EQ(sampling.min_p, 0.05f);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.seed, ~uint64_t{1});
  EXPECT_EQ(sampling.xtc_probability, 0.25f);
  EXPECT_EQ(sampling.xtc_threshold, 0.125f);
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.repetition_context, 0);
  EXPECT_EQ(sampling.presence_penalty, -0.5f);
  EXPECT_EQ(sampling.presence_context, 7);
  EXPECT_EQ(sampling.frequency_penalty, 2.0f);
  EXPECT_EQ(sampling.frequency_context, 9);
  EXPECT_EQ(
      sampling.logit_bias,
      (std::vector<std::pair<TokenId, float>>{{5, -100}, {0, 2}}));
}

TEST(ChatRequest, WhatIsLeftOpenIsAsByDefault) {
  GenerationDefaults defaults;
  defaults.temperature = 0.25f;
  defaults.repetition_penalty = 1.25f;
  const auto request = parse_chat_request(with_user_message(""), defaults);
  ASSERT_TRUE(request.is_ok());
  EXPECT_EQ(request->options.sampling.temperature, 0.25f);
  EXPECT_EQ(request->options.sampling.repetition_penalty, 1.25f);
  EXPECT_EQ(request->options.max_tokens, std::nullopt);
  EXPECT_EQ(request->options.top_logprobs, std::nullopt);
  EXPECT_EQ(request->options.n, 1);
}

TEST(ChatRequest, MinusOneLeavesAKnobUnset) {
  GenerationDefaults defaults;
  defaults.top_k = 7;
  const auto request = parse_chat_request(
      with_user_message(
          R"(,"max_tokens":-1,"max_completion_tokens":-1,"top_k":-1,)"
          R"("seed":-1,"top_logprobs":-1)"),
      defaults);
  ASSERT_TRUE(request.is_ok());
  EXPECT_EQ(request->options.max_tokens, std::nullopt);
  EXPECT_EQ(request->options.sampling.top_k, 7);
  EXPECT_EQ(request->options.sampling.seed, std::nullopt);
  EXPECT_EQ(request->options.top_logprobs, std::nullopt);
  EXPECT_EQ(
      parse(with_user_message(R"(,"max_tokens":4,"max_completion_tokens":-1)"))
          .options.max_tokens,
      4);
}

using Variables = std::vector<std::pair<std::string, std::string>>;

TEST(ChatRequest, ReasoningEffortIsToldToTheTemplate) {
  EXPECT_EQ(
      parse(with_user_message(R"(,"reasoning_effort":"low")"))
          .template_variables,
      (Variables{
          {"enable_thinking", "true"}, {"reasoning_effort", "\"low\""}}));
  EXPECT_EQ(
      parse(with_user_message(R"(,"reasoning_effort":"none")"))
          .template_variables,
      (Variables{{"enable_thinking", "false"}}));
  // What is said for the template itself stands over it.
  EXPECT_EQ(
      parse(with_user_message(
                R"(,"reasoning_effort":"low",)"
                R"("chat_template_kwargs":{"enable_thinking":false})"))
          .template_variables,
      (Variables{
          {"enable_thinking", "false"}, {"reasoning_effort", "\"low\""}}));
}

TEST(ChatRequest, VariablesThatATemplateGetsFromUsAreNotAClientsToSet) {
  const auto with_variables = [](const std::string& variables) {
    return with_user_message(",\"chat_template_kwargs\":{" + variables + "}");
  };
  std::vector<std::string> names = {
      "messages", "tools", "add_generation_prompt"};
  names.insert(names.end(), kSpecialTokens.begin(), kSpecialTokens.end());
  for (const std::string& name : names) {
    const Status refused = parse_chat_request(
                               with_variables("\"x\":1,\"" + name + "\":false"),
                               GenerationDefaults())
                               .status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidRequest) << name;
    EXPECT_EQ(refused.reason(), "unsupported_parameter") << name;
    EXPECT_EQ(refused.where(), "chat_template_kwargs." + name);
    EXPECT_EQ(
        parse(with_variables("\"x\":1,\"" + name + "\":null"))
            .template_variables,
        (Variables{{"x", "1"}}));
  }
  // What changes nothing is as if it weren't there; documents are a client's.
  EXPECT_EQ(
      parse(with_variables(R"("add_generation_prompt":true,"documents":[])"))
          .template_variables,
      (Variables{{"documents", "[]"}}));
}

// By chat_template_kwargs, else by the effort, else by the server's flag, else
// as the template has it.
TEST(Acceptance, thinking_precedence_matrix) {
  constexpr const char* kUnset = "unset";
  for (const char* const kwargs : {kUnset, "true", "false"}) {
    for (const char* const effort : {kUnset, "low", "none"}) {
      for (const char* const flag : {kUnset, "true", "false"}) {
        GenerationDefaults defaults;
        if (flag != kUnset) {
          defaults.thinking = flag == std::string("true");
        }
        std::string fields;
        if (kwargs != kUnset) {
          fields += R"(,"chat_template_kwargs":{"enable_thinking":)" +
              std::string(kwargs) + "}";
        }
        if (effort != kUnset) {
          fields += R"(,"reasoning_effort":")" + std::string(effort) + "\"";
        }
        const auto request =
            parse_chat_request(with_user_message(fields), defaults);
        const char* const of_effort =
            effort == std::string("none") ? "false" : "true";
        const std::string expected = kwargs != kUnset ? kwargs
            : effort != kUnset                        ? of_effort
                                                      : flag;
        const std::string* const thinks =
            request->find_variable("enable_thinking");
        EXPECT_EQ(thinks == nullptr ? kUnset : *thinks, expected)
            << kwargs << " " << effort << " " << flag;
      }
    }
  }
}

TEST(Acceptance, no_think_temperature_cap) {
  GenerationDefaults defaults;
  defaults.temperature = 1;
  const auto temperature = [&](const std::string& fields) {
    const auto request =
        parse_chat_request(with_user_message(fields), defaults);
    return request->options.sampling.temperature;
  };
  EXPECT_EQ(temperature(""), 1.0f);
  EXPECT_EQ(temperature(R"(,"reasoning_effort":"none")"), 0.7f);
  EXPECT_EQ(temperature(R"(,"reasoning_effort":"high")"), 1.0f);
  EXPECT_EQ(
      temperature(R"(,"reasoning_effort":"none","temperature":0.9)"), 0.9f);
  defaults.temperature = 0.3f;
  EXPECT_EQ(temperature(R"(,"reasoning_effort":"none")"), 0.3f);
  // What the server was told holds as it is, and the request over it.
  defaults.temperature = 1.9f;
  defaults.has_temperature_flag = true;
  EXPECT_EQ(temperature(R"(,"reasoning_effort":"none")"), 1.9f);
  EXPECT_EQ(
      temperature(R"(,"reasoning_effort":"none","temperature":0.9)"), 0.9f);
  EXPECT_EQ(
      temperature(R"(,"chat_template_kwargs":{"enable_thinking":false})"),
      1.9f);
  // The server's flag switches it off as well.
  defaults.has_temperature_flag = false;
  defaults.thinking = false;
  EXPECT_EQ(temperature(""), 0.7f);
  EXPECT_EQ(temperature(R"(,"reasoning_effort":"high")"), 1.9f);
}

TEST(ChatRequest, EitherFieldSwitchesLogprobsOn) {
  EXPECT_EQ(
      parse(with_user_message(R"(,"logprobs":true)")).options.top_logprobs, 0);
  EXPECT_EQ(
      parse(with_user_message(R"(,"top_logprobs":3)")).options.top_logprobs, 3);
  for (const char* const off :
       {R"(,"logprobs":false)", R"(,"top_logprobs":0)"}) {
    EXPECT_EQ(parse(with_user_message(off)).options.top_logprobs, std::nullopt);
  }
}

TEST(ChatRequest, NullsAndUnknownFieldsAreIgnored) {
  const ChatRequest request = parse(with_user_message(
      R"(,"stop":null,"max_tokens":null,"temperature":null,"stream":null,
      "stream_options":null,"tools":null,"foo":{"bar":[1]})"));
  EXPECT_EQ(request.options.max_tokens, std::nullopt);
  EXPECT_TRUE(request.options.stop.empty());
  EXPECT_EQ(request.tools.signatures, nullptr);
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
      R"({"role":"assistant","tool_calls":[)"
      R"({"id":"c1","type":"function","function":{"name":"f",)"
      R"("arguments":{"z":1,"a":2}}},)"
      R"({"id":"c2","type":"function","function":{"name":"g",)"
      R"("arguments":{}}},)"
      R"({"id":"c3","type":"function","function":{"name":"h",)"
      R"("arguments":"broken"}}]},)"
      R"({"role":"tool","tool_call_id":"c1","content":"3"}])");
}

TEST(ChatRequest, AssistantThatSaidNothingSaidAnEmptyText) {
  for (const char* const nothing :
       {R"(,"content":null)",
        "",
        R"(,"content":null,"tool_calls":null)",
        R"(,"tool_calls":[],"content":null)"}) {
    const ChatRequest request = parse(
        R"({"messages":[{"role":"assistant")" + std::string(nothing) + "}]}");
    EXPECT_NE(request.messages.find(R"("content":"")"), std::string::npos)
        << request.messages;
  }
}

TEST(ChatRequest, ThoughtsAreThereForEveryTemplate) {
  for (const char* const name :
       {"reasoning_content", "reasoning", "thinking"}) {
    const ChatRequest request = parse(
        R"({"messages":[{"role":"assistant","content":"x",")" +
        std::string(name) + R"(":"hm"}]})");
    for (const char* const there : {"reasoning_content", "thinking"}) {
      EXPECT_NE(
          request.messages.find("\"" + std::string(there) + "\":\"hm\""),
          std::string::npos)
          << request.messages;
    }
  }
}

// Each within the limits of a body.
TEST(ChatRequest, ArgumentsShareOneBudgetOfValues) {
  std::string arguments = R"("{\"a\":[0)";
  for (int i = 0; i < 200000; ++i) {
    arguments += ",0";
  }
  arguments += R"(]}")";
  std::string calls;
  for (int i = 0; i < 6; ++i) {
    calls += std::string(i == 0 ? "" : ",") +
        R"({"function":{"name":"f","arguments":)" + arguments + "}}";
  }
  const Status refused =
      parse_chat_request(
          R"({"messages":[{"role":"assistant","content":"","tool_calls":[)" +
              calls + "]}]}",
          GenerationDefaults())
          .status();
  EXPECT_EQ(refused.where(), "messages[0].tool_calls[5].function.arguments");
}

} // namespace
} // namespace ingle
