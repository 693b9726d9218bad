// Requests that are whole, and not meant well: each is answered once, and the
// next client is served.
#include "http/testing/server_fixture.h"

namespace ingle {
namespace {

class HostileRequest : public ServerFixture {
 protected:
  // The error's message.
  std::string refused(std::string_view path, const std::string& body) {
    const TestResponse response = ask(post(path, body));
    EXPECT_EQ(response.status, 400);
    EXPECT_TRUE(response.complete);
    return response.body;
  }
};

TEST_F(HostileRequest, WhatIsNoJson) {
  start();
  for (const std::string& body :
       {std::string("{"),
        std::string("{\"messages\":\"\xff\"}"),
        std::string("\xef\xbb\xbf\xff"),
        std::string("{\"a\":1}{\"b\":2}"),
        std::string("{\"a\":NaN}"),
        std::string("{\"a\":1e999}"),
        std::string("{\"a\":'x'}"),
        std::string("\0\0\0", 3)}) {
    EXPECT_NE(
        refused("/v1/chat/completions", body).find("the body: expected"),
        std::string::npos);
    EXPECT_NE(
        refused("/tokenize", body).find("the body: expected"),
        std::string::npos);
  }
  expect_still_serving();
}

TEST_F(HostileRequest, DeepJson) {
  start();
  for (const size_t depth : {65u, 100000u, 1000000u}) {
    for (const char* const opening : {"[", "{\"a\":"}) {
      std::string body;
      for (size_t i = 0; i < depth; ++i) {
        body += opening;
      }
      EXPECT_NE(
          refused("/v1/chat/completions", body).find("nested deeper than"),
          std::string::npos);
    }
  }
  expect_still_serving();
}

// Each of these took hours when something was looked up, or moved, per field.
TEST_F(HostileRequest, ManyFieldsOfOneObject) {
  start();
  std::string nulls = R"({"messages":[{"role":"user","content":"x")";
  std::string biases = R"({"prompt":"x","logit_bias":{"0":1)";
  for (int i = 1; i < 50000; ++i) {
    nulls += ",\"k" + std::to_string(i) + "\":null";
    biases += ",\"" + std::to_string(i) + "\":1";
  }
  EXPECT_EQ(ask(post("/v1/chat/completions", nulls + "}]}")).status, 200);
  EXPECT_NE(
      refused("/v1/completions", biases + "}}").find("logit_bias: expected"),
      std::string::npos);
  expect_still_serving();
}

TEST_F(HostileRequest, StopStringsThatAreTexts) {
  start();
  EXPECT_NE(
      refused(
          "/v1/completions",
          R"({"prompt":"x","n":128,"stop":["a",")" + std::string(2000, 'x') +
              R"("]})")
          .find("stop[1]: expected"),
      std::string::npos);
  expect_still_serving();
}

TEST_F(HostileRequest, TenThousandMessages) {
  start();
  std::string body = R"({"messages":[{"role":"user","content":"x"})";
  for (int i = 1; i < 10000; ++i) {
    body += R"(,{"role":"assistant","content":"x"})";
  }
  EXPECT_EQ(ask(post("/v1/chat/completions", body + "]}")).status, 200);
  EXPECT_NE(
      refused("/v1/chat/completions", body + R"(,{"role":"x","content":"x"}]})")
          .find("messages[10000].role"),
      std::string::npos);
  expect_still_serving();
}

TEST_F(HostileRequest, TextThatCannotFitTheContext) {
  start();
  EXPECT_NE(
      refused(
          "/v1/completions",
          R"({"prompt":")" + std::string(2000000, 'x') + "\"}")
          .find("context_length_exceeded"),
      std::string::npos);
  expect_still_serving();
}

TEST_F(HostileRequest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  TestClient client(port());
  client.send(
      post("/v1/completions", "{") + get("/health") +
      post("/v1/completions", R"({"prompt":"x"})") +
      post("/v1/completions", R"({"prompt":"x","stream":true})") +
      get("/nowhere"));
  EXPECT_EQ(client.read_response().status, 400);
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_NE(client.read_response().body.find("Paris"), std::string::npos);
  EXPECT_NE(client.read_response().body.find("[DONE]"), std::string::npos);
  EXPECT_EQ(client.read_response().status, 404);
  expect_still_serving();
}

TEST_F(HostileRequest, ChunkedBodyInManySmallChunks) {
  start();
  std::string request =
      "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string body = R"({"prompt":")" + std::string(2000, 'x') + "\"}";
  for (const char c : body) {
    request += "1\r\n" + std::string(1, c) + "\r\n";
  }
  EXPECT_EQ(ask(request + "0\r\n\r\n").status, 200);
  expect_still_serving();
}

TEST_F(HostileRequest, ClientThatSendsByteByByteIsServed) {
  start();
  TestClient client(port());
  for (const char c : post("/v1/completions", R"({"prompt":"x"})")) {
    ASSERT_TRUE(client.send({&c, 1}));
  }
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(HostileRequest, BodiesOfAllClientsAreLimitedTogether) {
  options_.limits.bodies_bytes = 100000;
  start();
  // Declaring much costs nobody anything.
  std::vector<std::unique_ptr<TestClient>> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(std::make_unique<TestClient>(port()));
    idle.back()->send(
        "POST /v1/completions HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n{");
  }
  const std::string fits(150000, 'x');
  for (int i = 0; i < 3; ++i) { // what was taken is given back
    EXPECT_EQ(ask(post("/v1/completions", fits)).status, 400);
    const TestResponse refused =
        ask(post("/v1/completions", std::string(300000, 'x')));
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.headers.at("retry-after"), "1");
    EXPECT_NE(refused.body.find("\"server_busy\""), std::string::npos);
  }
  expect_still_serving();
}

TEST_F(HostileRequest, SlowTemplatesHoldUpNobodyElse) {
  start();
  const auto held = hold_templates();
  // More than there are I/O threads, and workers.
  const auto clients = send_chats(6);
  EXPECT_EQ(ask(get("/health")).status, 200);
  EXPECT_EQ(ask(get("/v1/models")).status, 200);
  held->release();
  for (const auto& client : clients) {
    EXPECT_EQ(client->read_response().status, 200);
  }
  expect_still_serving();
}

} // namespace
} // namespace ingle
