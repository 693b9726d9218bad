// Thoughts and tool calls in answers, as clients read them.
#include <set>

#include <gtest/gtest.h>

#include "api/answer_writer.h"
#include "api/json_reader.h"

namespace ingle {
namespace {

using End = ToolCallPart::End;

std::unique_ptr<AnswerWriter> writer(bool stream) {
  AnswerOptions options;
  options.stream = stream;
  return make_chat_writer({"u1", "tiny", 1700000000}, options, nullptr);
}

GenerationEnd called() {
  GenerationEnd end;
  end.reason = FinishReason::kToolCalls;
  end.stats.prompt_tokens = 6;
  end.stats.generated_tokens = 20;
  end.stats.reasoning_tokens = 5;
  return end;
}

GenerationDelta content(std::string text) {
  GenerationDelta delta;
  delta.text = std::move(text);
  return delta;
}

GenerationDelta thought(std::string text) {
  GenerationDelta delta;
  delta.reasoning = std::move(text);
  return delta;
}

GenerationDelta call(ToolCallPart part) {
  GenerationDelta delta;
  delta.tool_calls.push_back(std::move(part));
  return delta;
}

// The answer made of these, as it is sent at the end.
Json body_of(const std::vector<GenerationDelta>& deltas) {
  const auto answer = writer(/*stream=*/false);
  answer->begin();
  for (const GenerationDelta& delta : deltas) {
    EXPECT_EQ(answer->delta(0, delta), "");
  }
  return Json::parse(answer->end(0, called()));
}

// The deltas of the events.
std::vector<Json> deltas_of(std::string_view events) {
  std::vector<Json> deltas;
  while (!events.empty()) {
    const size_t end = events.find("\n\n");
    const std::string_view event = events.substr(0, end).substr(6);
    if (event != "[DONE]") {
      deltas.push_back(Json::parse(event)["choices"][0]["delta"]);
    }
    events.remove_prefix(end + 2);
  }
  return deltas;
}

const std::vector<GenerationDelta>& a_call() {
  static const std::vector<GenerationDelta> kDeltas = {
      thought("wh"),
      thought("y"),
      call({0, "f", "{\"a\"", End::kNone}),
      call({0, "", ": 1", End::kNone}),
      call({0, "", "}", End::kWhole})};
  return kDeltas;
}

TEST(ChatAnswer, CallsStandInTheMessage) {
  const Json body = body_of(a_call());
  const Json& choice = body["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  const Json& message = choice["message"];
  EXPECT_EQ(message["reasoning_content"], "why");
  EXPECT_EQ(message["reasoning"], "why");
  ASSERT_EQ(message["tool_calls"].size(), 1U);
  const Json& made = message["tool_calls"][0];
  EXPECT_EQ(made["type"], "function");
  EXPECT_EQ(made["function"]["name"], "f");
  EXPECT_EQ(made["function"]["arguments"], "{\"a\": 1}");
  EXPECT_FALSE(made.contains("index"));
  EXPECT_EQ(made["id"].get<std::string>().size(), 13U);
  EXPECT_TRUE(made["id"].get<std::string>().starts_with("call_"));
}

TEST(ChatAnswer, UsageCountsThoughts) {
  const Json usage = body_of(a_call())["usage"];
  EXPECT_EQ(usage["completion_tokens"], 20);
  EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"], 5);
}

TEST(Acceptance, content_null_only_with_tool_calls) {
  const auto message = [](const std::vector<GenerationDelta>& deltas) {
    return body_of(deltas)["choices"][0]["message"];
  };
  EXPECT_EQ(message(a_call())["content"], nullptr);
  EXPECT_EQ(message({thought("why")})["content"], "");
  EXPECT_EQ(message({})["content"], "");
  EXPECT_FALSE(message({}).contains("tool_calls"));
  EXPECT_FALSE(message({}).contains("reasoning"));
  std::vector<GenerationDelta> both = a_call();
  both.insert(both.begin(), content("Well."));
  EXPECT_EQ(message(both)["content"], "Well.");
}

TEST(ChatAnswer, StreamGivesNameOnceThenArgumentsAsTheyCome) {
  const auto answer = writer(/*stream=*/true);
  std::string events;
  for (const GenerationDelta& delta : a_call()) {
    events += answer->delta(0, delta);
  }
  const std::vector<Json> deltas = deltas_of(events);
  ASSERT_EQ(deltas.size(), 5U);
  EXPECT_EQ(
      to_text(deltas[0]), R"({"reasoning_content":"wh","reasoning":"wh"})");
  EXPECT_EQ(
      to_text(deltas[2]["tool_calls"][0]["function"]),
      R"({"name":"f","arguments":"{\"a\""})");
  EXPECT_EQ(deltas[2]["tool_calls"][0]["index"], 0);
  EXPECT_EQ(
      to_text(deltas[3]),
      R"({"tool_calls":[{"index":0,"function":{"arguments":": 1"}}]})");
  EXPECT_EQ(
      to_text(deltas[4]),
      R"({"tool_calls":[{"index":0,"function":{"arguments":"}"}}]})");
  // As in the answer that is not streamed.
  EXPECT_EQ(
      deltas[2]["tool_calls"][0]["id"],
      body_of(a_call())["choices"][0]["message"]["tool_calls"][0]["id"]);
  EXPECT_NE(
      answer->end(0, called()).find(R"("finish_reason":"tool_calls")"),
      std::string::npos);
}

TEST(ChatAnswer, OneDeltaOfEverythingIsAChunkOfEach) {
  GenerationDelta delta = call({0, "f", "{}", End::kWhole});
  delta.reasoning = "why";
  delta.text = "so";
  const std::vector<Json> deltas =
      deltas_of(writer(/*stream=*/true)->delta(0, delta));
  ASSERT_EQ(deltas.size(), 3U);
  EXPECT_TRUE(deltas[0].contains("reasoning"));
  EXPECT_TRUE(deltas[1].contains("content"));
  EXPECT_TRUE(deltas[2].contains("tool_calls"));
}

TEST(ChatAnswer, IdsOfCallsDiffer) {
  const auto answer = writer(/*stream=*/false);
  for (size_t i = 0; i < 50; ++i) {
    answer->delta(0, call({i, "f", "{}", End::kWhole}));
  }
  const Json body = Json::parse(answer->end(0, called()));
  std::set<std::string> ids;
  for (const Json& made : body["choices"][0]["message"]["tool_calls"]) {
    ids.insert(made["id"].get<std::string>());
  }
  EXPECT_EQ(ids.size(), 50U);
}

TEST(ChatAnswer, VoidCallIsNotInTheMessage) {
  const Json message = body_of(
      {call({0, "f", "{\"a\"", End::kNone}),
       call({0, "", "", End::kVoid}),
       content("f(a"),
       call({1, "f", "{}", End::kWhole})})["choices"][0]["message"];
  EXPECT_EQ(message["content"], "f(a");
  ASSERT_EQ(message["tool_calls"].size(), 1U);
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], "{}");
}

} // namespace
} // namespace ingle
