// Clients that are broken, slow, greedy or gone: each hurts itself alone.
#include "http/testing/server_fixture.h"

namespace ingle {
namespace {

using std::chrono::milliseconds;

class HostileClient : public ServerFixture {};

TEST_F(HostileClient, DisconnectCancelsAStream) {
  start();
  FakeScript script;
  script.hold_after = 1;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  client.read_until("Par");
  client.close();
  EXPECT_TRUE(generator_.wait_for_cancel(1));
  EXPECT_TRUE(generator_.wait_for_ends(1));
  expect_still_serving();
}

TEST_F(HostileClient, DisconnectCancelsBeforeTheFirstToken) {
  start();
  FakeScript script;
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  client.read_until("\r\n\r\n");
  client.reset();
  EXPECT_TRUE(generator_.wait_for_cancel(1));
  expect_still_serving();
}

TEST_F(HostileClient, DisconnectCancelsAWholeAnswer) {
  start();
  FakeScript script;
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body()));
  ASSERT_TRUE(generator_.wait_for_submits(1));
  client.close();
  EXPECT_TRUE(generator_.wait_for_cancel(1));
  expect_still_serving();
}

TEST_F(HostileClient, DisconnectIsSeenBehindPipelinedBytes) {
  start();
  FakeScript script;
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body()) + get("/health"));
  ASSERT_TRUE(generator_.wait_for_submits(1));
  client.close();
  EXPECT_TRUE(generator_.wait_for_cancel(1));
  expect_still_serving();
}

TEST_F(HostileClient, ClosedSendingHalfCounts) {
  start();
  FakeScript script;
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body()));
  ASSERT_TRUE(generator_.wait_for_submits(1));
  client.close_sending_half();
  EXPECT_TRUE(generator_.wait_for_cancel(1));
  EXPECT_TRUE(client.at_end());
  expect_still_serving();
}

TEST_F(HostileClient, DisconnectLeavesOthersAlone) {
  start();
  FakeScript script;
  script.hold_after = 1;
  generator_.set_script(script);
  TestClient stays(port());
  stays.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  stays.read_until("Par");
  TestClient leaves(port());
  leaves.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  leaves.read_until("Par");
  leaves.reset();
  EXPECT_TRUE(generator_.wait_for_cancel(2));
  generator_.release();
  EXPECT_TRUE(stays.read_until("[DONE]").ends_with("[DONE]"));
  EXPECT_EQ(generator_.cancelled(), std::set<GenerationId>{2});
}

TEST_F(HostileClient, ResetWhileBytesAreWritten) {
  start();
  FakeScript script;
  script.pieces.assign(2000, std::string(1000, 'x'));
  generator_.set_script(script);
  for (int i = 0; i < 8; ++i) {
    TestClient client(port());
    client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
    client.read_until("\"assistant\"");
    client.reset();
  }
  EXPECT_TRUE(generator_.wait_for_ends(8));
  expect_still_serving();
}

TEST_F(HostileClient, SlowReaderGetsEverythingAndHoldsUpNobody) {
  start();
  FakeScript script;
  script.pieces.assign(500, std::string(10000, 'x'));
  generator_.set_script(script);
  TestClient slow(port(), /*receive_buffer=*/4096);
  slow.send(post("/v1/completions", R"({"prompt":"x","stream":true})"));
  ASSERT_TRUE(generator_.wait_for_ends(1)); // the engine never waited
  expect_still_serving();
  const TestResponse response = slow.read_response();
  EXPECT_TRUE(response.complete);
  EXPECT_GT(response.body.size(), 500u * 10000u);
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(HostileClient, ReaderThatNeverReadsIsDropped) {
  options_.limits.write_timeout = milliseconds(200);
  start();
  FakeScript script;
  script.pieces.assign(1000, std::string(10000, 'x'));
  script.hold_after = 1000;
  generator_.set_script(script);
  TestClient client(port(), /*receive_buffer=*/4096);
  client.send(post("/v1/completions", R"({"prompt":"x","stream":true})"));
  EXPECT_TRUE(generator_.wait_for_cancel(1));
  expect_still_serving();
}

TEST_F(HostileClient, OversizedHeaderIs431) {
  start();
  TestClient client(port());
  client.send(
      "GET /health HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n");
  const TestResponse response = client.read_response();
  EXPECT_EQ(response.status, 431);
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.at_end());
  expect_still_serving();
}

TEST_F(HostileClient, OversizedBodyIs413) {
  options_.limits.body_bytes = 1000;
  start();
  const std::string body =
      chat_body(",\"x\":\"" + std::string(990, 'x') + "\"");
  TestClient declared(port());
  declared.send(post("/v1/chat/completions", body));
  EXPECT_EQ(declared.read_response().status, 413);
  TestClient chunked(port());
  chunked.send(
      "POST /v1/chat/completions HTTP/1.1\r\n"
      "Transfer-Encoding: chunked\r\n\r\n1000\r\n" +
      std::string(0x1000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.read_response().status, 413);
  EXPECT_TRUE(chunked.at_end());
  expect_still_serving();
}

TEST_F(HostileClient, RefusalReachesAClientThatIsStillSending) {
  start();
  TestClient client(port());
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 67108864\r\n\r\n");
  client.send(std::string(size_t{8} << 20, 'x'));
  EXPECT_EQ(client.read_response().status, 413);
  expect_still_serving();
}

TEST_F(HostileClient, WhatIsNotHttpIs400) {
  start();
  for (const char* bytes :
       {"\x16\x03\x01\x02\x01\x01\xfc\x03\x03 tls\r\n\r\n",
        "hello\r\n\r\n",
        "GET /health HTTP/9.9\r\n\r\n",
        "GET /health HTTP/1.1\r\nno colon\r\n\r\n",
        "POST /health HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /health HTTP/1.1\r\nContent-Length: 1\r\n"
        "Transfer-Encoding: chunked\r\n\r\n",
        "POST /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    TestClient client(port());
    client.send(bytes);
    const TestResponse response = client.read_response();
    EXPECT_EQ(response.status, 400) << bytes;
    EXPECT_TRUE(client.at_end()) << bytes;
  }
  expect_still_serving();
}

TEST_F(HostileClient, SlowSenderIs408) {
  options_.limits.request_timeout = milliseconds(100);
  start();
  TestClient head(port());
  head.send("GET /health HT");
  TestClient body(port());
  body.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 50\r\n\r\n{");
  for (TestClient* const client : {&head, &body}) {
    const TestResponse response = client->read_response();
    EXPECT_EQ(response.status, 408);
    EXPECT_NE(response.body.find("\"request_timeout\""), std::string::npos);
    EXPECT_TRUE(client->at_end());
  }
  expect_still_serving();
}

TEST_F(HostileClient, IdleConnectionIsDropped) {
  options_.limits.idle_timeout = milliseconds(100);
  start();
  TestClient client(port());
  client.send(get("/health"));
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_TRUE(client.at_end());
  expect_still_serving();
}

TEST_F(HostileClient, AnswerOutlivesTheIdleAndRequestTimeouts) {
  options_.limits.idle_timeout = milliseconds(50);
  options_.limits.request_timeout = milliseconds(50);
  options_.limits.write_timeout = milliseconds(50);
  start();
  FakeScript script;
  script.hold_after = 1;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/completions", R"({"prompt":"x","stream":true})"));
  client.read_until("Par");
  std::this_thread::sleep_for(milliseconds(200));
  generator_.release();
  EXPECT_TRUE(client.read_until("[DONE]").ends_with("[DONE]"));
}

TEST_F(HostileClient, HalfARequestThenGone) {
  start();
  for (const char* part :
       {"",
        "G",
        "POST /v1/completions HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"}) {
    TestClient client(port());
    client.send(part);
    client.close();
  }
  expect_still_serving();
}

TEST_F(HostileClient, ConnectionsAreLimited) {
  options_.limits.connections = 2;
  start();
  {
    TestClient first(port());
    TestClient second(port());
    for (TestClient* const client : {&first, &second}) {
      client->send(get("/health"));
      EXPECT_EQ(client->read_response().status, 200);
    }
    TestClient third(port());
    const TestResponse turned_away = third.read_response();
    EXPECT_EQ(turned_away.status, 503);
    EXPECT_EQ(turned_away.headers.at("retry-after"), "1");
    EXPECT_TRUE(third.at_end());
    first.send("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
    first.read_response();
    EXPECT_TRUE(first.at_end());
  }
}

} // namespace
} // namespace ingle
