// Who is let in: API keys.
#include "http/testing/server_fixture.h"

namespace ingle {
namespace {

class AccessTest : public ServerFixture {
 protected:
  AccessTest() {
    options_.api_keys = {"sekrit"};
    start();
  }
};

TEST_F(AccessTest, RequestsWithTheKeyAreServed) {
  const TestResponse response = ask(post(
      "/v1/chat/completions", chat_body(), "Authorization: Bearer sekrit\r\n"));
  EXPECT_EQ(response.status, 200);
}

TEST_F(AccessTest, WithoutTheKeyIs401OnEveryRoute) {
  for (const std::string& request :
       {get("/v1"),
        get("/metrics"),
        get("/stats"),
        get("/v1/models"),
        get("/v1/models/tiny"),
        get("/nowhere"),
        post("/v1/completions", R"({"prompt":"x"})"),
        post("/tokenize", R"({"content":"x"})"),
        post(
            "/v1/chat/completions",
            chat_body(),
            "Authorization: Bearer wrong\r\n")}) {
    const TestResponse response = ask(request);
    EXPECT_EQ(response.status, 401) << request;
    EXPECT_EQ(response.headers.at("www-authenticate"), "Bearer");
    EXPECT_NE(response.body.find("\"invalid_api_key\""), std::string::npos);
    EXPECT_EQ(response.body.find("sekrit"), std::string::npos);
  }
  EXPECT_TRUE(generator_.requests().empty());
}

TEST_F(AccessTest, StatusLineSaysUnauthorized) {
  TestClient client(port());
  client.send(get("/v1"));
  EXPECT_EQ(client.read_until("\r\n"), "HTTP/1.1 401 Unauthorized\r\n");
}

TEST_F(AccessTest, HealthNeedsNoKey) {
  EXPECT_EQ(ask(get("/health")).status, 200);
}

TEST_F(AccessTest, BodyOfAStrangerIsNotRead) {
  TestClient client(port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nContent-Length: 1000000\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 401); // and no 100
  EXPECT_TRUE(client.at_end());
}

TEST(AccessOptions, EmptyKeyIsRefused) {
  FakeGenerator generator;
  const StoppedClock clock;
  ServerOptions options;
  options.port = 0;
  options.api_keys = {""};
  const auto started = Server::start(options, generator, clock);
  ASSERT_FALSE(started.is_ok());
  EXPECT_EQ(
      started.status().message(),
      "an API key is empty: give one that nobody guesses");
}

TEST(AccessOptions, KeyOpensTheServerToOtherMachines) {
  FakeGenerator generator;
  const StoppedClock clock;
  ServerOptions options;
  options.host = "0.0.0.0";
  options.port = 0;
  options.api_keys = {"sekrit"};
  const auto started = Server::start(options, generator, clock);
  ASSERT_TRUE(started.is_ok()) << started.status().message();
  EXPECT_EQ(exchange((*started)->port(), get("/v1")).status, 401);
}

} // namespace
} // namespace ingle
