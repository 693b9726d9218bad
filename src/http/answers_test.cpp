// Answers of several choices, with log-probabilities, progress and pings.
#include "http/testing/server_fixture.h"

namespace ingle {
namespace {

using std::chrono::milliseconds;

class AnswersTest : public ServerFixture {};

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + what.size())) {
    ++found;
  }
  return found;
}

TEST_F(AnswersTest, EachChoiceIsAGenerationOfItsOwn) {
  start();
  const TestResponse response =
      ask(post("/v1/chat/completions", chat_body(R"(,"n":3,"seed":5)")));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(count(response.body, "\"content\":\"Paris\""), 3u);
  EXPECT_EQ(count(response.body, "\"finish_reason\":\"stop\""), 3u);
  EXPECT_NE(
      response.body.find(R"("prompt_tokens":6,"completion_tokens":6)"),
      std::string::npos);
  std::set<uint64_t> seeds;
  for (const GenerationRequest& request : generator_.requests()) {
    seeds.insert(request.sampling.seed.value_or(0));
  }
  EXPECT_EQ(seeds, (std::set<uint64_t>{5, 6, 7}));
}

TEST_F(AnswersTest, ManyPromptsAreAnsweredInTheirOrder) {
  start();
  const TestResponse response = ask(
      post("/v1/completions", R"({"prompt":["a",[98]],"n":2,"stream":true})"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(count(response.body, "\"finish_reason\":\"stop\""), 4u);
  EXPECT_EQ(count(response.body, "[DONE]"), 1u);
  EXPECT_EQ(count(response.body, "\"usage\""), 1u);
  const auto requests = generator_.requests();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[1].prompt, (std::vector<TokenId>{256, 'a'}));
  EXPECT_EQ(requests[2].prompt, (std::vector<TokenId>{'b'}));
}

TEST_F(AnswersTest, DisconnectCancelsEveryChoice) {
  start();
  FakeScript script;
  script.hold_after = 1;
  generator_.set_script(script);
  TestClient client(port());
  client.send(
      post("/v1/chat/completions", chat_body(R"(,"n":2,"stream":true)")));
  client.read_until("Par");
  client.close();
  EXPECT_TRUE(generator_.wait_for_cancel(1));
  EXPECT_TRUE(generator_.wait_for_cancel(2));
  EXPECT_TRUE(generator_.wait_for_ends(2));
  expect_still_serving();
}

TEST_F(AnswersTest, OneChoiceThatFailsFailsTheAnswer) {
  start();
  FakeScript script;
  script.end.status = Status::internal("no luck");
  generator_.set_script(script);
  const TestResponse whole =
      ask(post("/v1/chat/completions", chat_body(R"(,"n":2)")));
  EXPECT_EQ(whole.status, 500);
  const TestResponse stream =
      ask(post("/v1/chat/completions", chat_body(R"(,"n":2,"stream":true)")));
  EXPECT_EQ(count(stream.body, "\"error\""), 1u);
  EXPECT_EQ(count(stream.body, "[DONE]"), 0u);
  expect_still_serving();
}

TEST_F(AnswersTest, LogprobsAreThereWhenAskedFor) {
  start();
  const std::string path = "/v1/chat/completions";
  EXPECT_EQ(count(ask(post(path, chat_body())).body, "logprob"), 0u);
  EXPECT_EQ(generator_.last_request().top_logprobs, std::nullopt);
  const TestResponse response =
      ask(post(path, chat_body(R"(,"logprobs":true,"top_logprobs":2)")));
  EXPECT_EQ(count(response.body, "\"logprob\":"), 2u);
  EXPECT_EQ(generator_.last_request().top_logprobs, 2);
}

TEST_F(AnswersTest, ProgressOfThePromptIsTold) {
  start();
  FakeScript script;
  script.prefill = {{100, 0, 50, 1.0, {}}, {100, 0, 100, 2.0, {}}};
  generator_.set_script(script);
  const TestResponse told = ask(post(
      "/v1/chat/completions",
      chat_body(R"(,"stream":true,"return_progress":true)")));
  EXPECT_EQ(count(told.body, "\"prompt_progress\""), 2u);
  EXPECT_LT(told.body.find("\"processed\":100"), told.body.find("Par"));
  const TestResponse untold =
      ask(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  EXPECT_EQ(count(untold.body, "prompt_progress"), 0u);
}

TEST_F(AnswersTest, QuietStreamSendsPings) {
  options_.limits.ping_interval = milliseconds(20);
  start();
  FakeScript script;
  // Steps of the prompt that are not told must not keep the pings away.
  script.prefill.assign(3, PrefillStep{});
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  const std::string head = client.read_until(": ping\n\n");
  EXPECT_NE(head.find("\"role\":\"assistant\""), std::string::npos);
  client.read_until(": ping\n\n");
  generator_.release();
  const std::string rest = client.read_until("[DONE]");
  EXPECT_NE(rest.find("Par"), std::string::npos);
}

TEST_F(AnswersTest, WholeAnswerIsNotPinged) {
  options_.limits.ping_interval = milliseconds(10);
  start();
  FakeScript script;
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body()));
  ASSERT_TRUE(generator_.wait_for_submits(1));
  std::this_thread::sleep_for(milliseconds(50));
  generator_.release();
  const TestResponse response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(count(response.body, "ping"), 0u);
}

TEST_F(AnswersTest, HeadersComeBeforeTheFirstToken) {
  start();
  FakeScript script;
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  EXPECT_NE(
      client.read_until("\"assistant\"").find("HTTP/1.1 200"),
      std::string::npos);
  generator_.release();
}

TEST_F(AnswersTest, TextEndpoints) {
  start();
  EXPECT_EQ(
      ask(post("/tokenize", R"({"content":"hi"})")).body,
      R"({"tokens":[104,105]})");
  EXPECT_EQ(
      ask(post("/detokenize", R"({"tokens":[104,105]})")).body,
      R"({"content":"hi"})");
  EXPECT_EQ(
      ask(post("/apply-template", chat_body())).body,
      R"({"prompt":"<s>hello"})");
  EXPECT_EQ(ask(post("/tokenize", "{}")).status, 400);
  EXPECT_EQ(ask(get("/tokenize")).status, 405);
}

} // namespace
} // namespace ingle
