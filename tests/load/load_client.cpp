#include "load_client.h"

#include <array>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ingle {
namespace {

using Json = nlohmann::json;

// Behind 64 others, and a sanitizer.
constexpr auto kPatience = std::chrono::seconds(60);

constexpr std::string_view kCompletions = "/v1/completions";

constexpr std::array<std::string_view, 6> kNonsense = {
    "",
    "{\"prompt\": \"x\"",
    "{\"prompt\": 7}",
    "{\"prompt\": [1, 99999999]}",
    "{\"prompt\": \"x\", \"temperature\": \"hot\"}",
    "{\"prompt\": \"x\", \"max_tokens\": 100000}"};

} // namespace

std::string completion_body(
    std::string_view prompt,
    int max_tokens,
    std::string_view fields) {
  Json body = Json::parse("{" + std::string(fields) + "}");
  body["prompt"] = prompt;
  body["max_tokens"] = max_tokens;
  body["temperature"] = 0;
  body["ignore_eos"] = true;
  return body.dump();
}

std::string streamed_text(const TestResponse& response) {
  constexpr std::string_view kData = "data: ";
  constexpr std::string_view kDone = "data: [DONE]\n\n";
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  EXPECT_TRUE(response.body.ends_with(kDone)) << response.body;
  std::string text;
  size_t at = 0;
  while ((at = response.body.find(kData, at)) != std::string::npos) {
    at += kData.size();
    const size_t end = response.body.find('\n', at);
    const std::string line = response.body.substr(at, end - at);
    const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_object() && event.contains("choices")) {
      for (const Json& choice : event["choices"]) {
        text += choice.value("text", "");
      }
    } else {
      EXPECT_EQ(line, "[DONE]");
    }
  }
  return text;
}

std::vector<std::string> answer_texts(const TestResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_TRUE(response.complete);
  const Json body =
      Json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> texts;
  if (body.is_object() && body.contains("choices")) {
    for (const Json& choice : body["choices"]) {
      texts.push_back(choice.value("text", ""));
    }
  }
  return texts;
}

int LoadClient::pick(int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random_);
}

std::string LoadClient::words(int bytes) {
  std::string text;
  while (std::ssize(text) < bytes) {
    text += static_cast<char>(pick(0, 4) == 0 ? ' ' : pick('a', 'z'));
  }
  return text;
}

void LoadClient::act() {
  const int roll = pick(0, 9);
  if (roll < 4) {
    const int canary = pick(0, static_cast<int>(canaries_.size()) - 1);
    check_canary(canaries_[static_cast<size_t>(canary)], roll % 2 == 0);
  } else if (roll < 8) {
    leave(static_cast<Leaving>(roll - 4));
  } else if (roll == 8) {
    send_nonsense();
  } else {
    ask_for_several_answers();
  }
}

void LoadClient::check_canary(const Canary& canary, bool stream) {
  TestClient client(port_);
  client.wait_at_most(kPatience);
  client.send(post(
      kCompletions,
      completion_body(canary.prompt, 24, stream ? R"("stream": true)" : "")));
  const TestResponse response = client.read_response();
  if (stream) {
    EXPECT_EQ(streamed_text(response), canary.answer) << canary.prompt;
  } else {
    EXPECT_EQ(answer_texts(response), std::vector{canary.answer})
        << canary.prompt;
  }
  ++counts_.canaries;
}

void LoadClient::ask_for_several_answers() {
  TestClient client(port_);
  client.wait_at_most(kPatience);
  client.send(post(
      kCompletions,
      completion_body(words(pick(1, 300)), pick(1, 40), R"("n": 3)")));
  const auto texts = answer_texts(client.read_response());
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[0], texts[1]); // it is greedy
  EXPECT_EQ(texts[0], texts[2]);
  ++counts_.others;
}

// Two on one connection: the first does not spoil it.
void LoadClient::send_nonsense() {
  TestClient client(port_);
  client.wait_at_most(kPatience);
  for (int i = 0; i < 2; ++i) {
    const int which = pick(0, static_cast<int>(kNonsense.size()) - 1);
    client.send(post(kCompletions, kNonsense[static_cast<size_t>(which)]));
    const TestResponse response = client.read_response();
    EXPECT_EQ(response.status, 400) << response.body;
    EXPECT_NE(response.body.find("\"error\""), std::string::npos);
    ++counts_.refused;
  }
}

void LoadClient::leave(Leaving where) {
  TestClient client(port_);
  client.wait_at_most(kPatience);
  client.send(post(
      kCompletions,
      completion_body(
          words(pick(1, 300)),
          pick(8, 60),
          R"("stream": true, "return_progress": true)")));
  read_some(client, where);
  part_from(client);
  ++counts_.left;
}

// Not past the end: the connection stays open for another request.
void LoadClient::read_some(TestClient& client, Leaving where) {
  int tokens = where == Leaving::kInAnswer ? pick(1, 6) : 0;
  bool goes_on = where != Leaving::kAtOnce;
  while (goes_on) {
    const std::string event = client.read_until("\n\n");
    ASSERT_TRUE(event.ends_with("\n\n")) << event;
    const auto has = [&](std::string_view text) {
      return event.find(text) != std::string::npos;
    };
    ASSERT_FALSE(has("\"error\"")) << event;
    if (has("\"text\"")) {
      --tokens;
    }
    goes_on = !has("[DONE]") &&
        !(where == Leaving::kInPrompt && has("prompt_progress")) &&
        !(where == Leaving::kInAnswer && tokens <= 0);
  }
}

void LoadClient::part_from(TestClient& client) {
  const int roll = pick(0, 2);
  if (roll == 0) {
    client.close();
  } else if (roll == 1) {
    client.reset();
  } else {
    client.close_sending_half();
    client.read_to_end(); // which comes: the server closes too
    EXPECT_TRUE(client.at_end());
  }
}

} // namespace ingle
