// stop(), at awkward moments.
#include "http/testing/server_fixture.h"

namespace ingle {
namespace {

using std::chrono::milliseconds;

class Shutdown : public ServerFixture {};

TEST_F(Shutdown, WithoutAnyClient) {
  start();
  server_->stop();
  server_->stop();
}

TEST_F(Shutdown, ClosesIdleAndHalfSentConnectionsAtOnce) {
  start();
  TestClient fresh(port());
  TestClient kept(port());
  kept.send(get("/health"));
  EXPECT_EQ(kept.read_response().status, 200);
  TestClient half(port());
  half.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 9\r\n\r\n{");
  const auto begin = std::chrono::steady_clock::now();
  server_->stop();
  EXPECT_LT(
      std::chrono::steady_clock::now() - begin,
      options_.limits.stop_timeout / 2);
  EXPECT_TRUE(kept.at_end());
  EXPECT_TRUE(half.at_end());
}

TEST_F(Shutdown, RunningStreamEndsWithAnErrorEvent) {
  start();
  FakeScript script;
  script.hold_after = 1;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  client.read_until("Par");
  server_->stop();
  EXPECT_EQ(generator_.cancelled(), std::set<GenerationId>{1});
  const std::string rest = client.read_to_end();
  EXPECT_NE(rest.find("\"code\":\"server_stopping\""), std::string::npos);
  EXPECT_EQ(rest.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(rest.ends_with("0\r\n\r\n"));
}

TEST_F(Shutdown, RunningWholeAnswerIs503) {
  start();
  FakeScript script;
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body()));
  ASSERT_TRUE(generator_.wait_for_submits(1));
  server_->stop();
  const TestResponse response = client.read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.body.find("\"server_stopping\""), std::string::npos);
}

TEST_F(Shutdown, EngineThatNeverEndsIsNotWaitedForLong) {
  options_.limits.stop_timeout = milliseconds(100);
  start();
  FakeScript script;
  script.hold_after = 1;
  script.ignores_cancel = true;
  generator_.set_script(script);
  TestClient stream(port());
  stream.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  stream.read_until("Par");
  TestClient whole(port());
  whole.send(post("/v1/chat/completions", chat_body()));
  ASSERT_TRUE(generator_.wait_for_submits(2));
  server_.reset();
  EXPECT_EQ(stream.read_to_end().find("[DONE]"), std::string::npos);
  // Deltas that come after the server is gone are dropped.
  generator_.release();
  EXPECT_TRUE(generator_.wait_for_ends(2));
}

TEST_F(Shutdown, WhileTheEngineKeepsTalking) {
  options_.limits.stop_timeout = milliseconds(20);
  start();
  FakeScript script;
  script.pieces.assign(20000, "x");
  script.ignores_cancel = true;
  generator_.set_script(script);
  TestClient stream(port());
  stream.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  stream.read_until("\"x\"");
  server_.reset();
}

TEST_F(Shutdown, NothingIsListeningAfterwards) {
  start();
  const uint16_t was = port();
  server_.reset();
  TestClient late(was);
  EXPECT_FALSE(late.send(get("/health")));
}

// More requests than workers: some are rendered, some wait for a worker.
TEST_F(Shutdown, WhileRequestsAreRendered) {
  options_.limits.stop_timeout = milliseconds(50);
  start();
  const auto held = hold_templates();
  const auto clients = send_chats(6);
  held->wait_for(2);
  std::thread stopping([&] { server_->stop(); });
  std::this_thread::sleep_for(milliseconds(100)); // past the timeout
  held->release();
  stopping.join();
  for (const auto& client : clients) {
    client->read_to_end(); // closed, whatever it was told
  }
}

} // namespace
} // namespace ingle
