// What well-behaved clients see.
#include "http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "http/testing/server_fixture.h"

namespace ingle {
namespace {

// No file or socket can be opened while one lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() {
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_;
};

class ServerTest : public ServerFixture {
 protected:
  ServerTest() {
    start();
  }
};

TEST_F(ServerTest, models_list_shape) {
  const std::string model =
      R"({"id":"tiny","object":"model","created":1700000000,)"
      R"("owned_by":"ingle","context_window":4096})";
  const TestResponse list = ask(get("/v1/models"));
  EXPECT_EQ(list.status, 200);
  EXPECT_EQ(list.headers.at("content-type"), "application/json");
  EXPECT_EQ(list.body, R"({"object":"list","data":[)" + model + "]}");
  EXPECT_EQ(ask(get("/v1/models/tiny")).body, model);
  const TestResponse unknown = ask(get("/v1/models/other"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find("\"model_not_found\""), std::string::npos);
}

TEST_F(ServerTest, ModelIdsMayHoldSlashes) {
  ServedModel model = *generator_.model();
  model.name = "org/tiny";
  generator_.set_model(std::make_shared<ServedModel>(model));
  EXPECT_EQ(ask(get("/v1/models/org/tiny")).status, 200);
  EXPECT_EQ(ask(get("/v1/models/org%2Ftiny")).status, 200);
  EXPECT_EQ(ask(get("/v1/models/org%2")).status, 404);
}

TEST_F(ServerTest, health_exact_body) {
  const TestResponse response = ask(get("/health"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), "application/json");
  EXPECT_EQ(response.body, R"({"status": "ok"})");
}

TEST_F(ServerTest, LoadingIs503Everywhere) {
  generator_.set_model(nullptr);
  const TestResponse health = ask(get("/health"));
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(health.body, R"({"status": "loading"})");
  for (const std::string& request :
       {get("/v1/models"),
        get("/v1/models/tiny"),
        post("/v1/chat/completions", chat_body()),
        post("/v1/completions", R"({"prompt":"x"})")}) {
    const TestResponse response = ask(request);
    EXPECT_EQ(response.status, 503) << request;
    EXPECT_EQ(response.headers.at("retry-after"), "1");
    EXPECT_NE(response.body.find("\"model_loading\""), std::string::npos);
  }
  EXPECT_EQ(ask(get("/v1")).status, 200);
}

TEST_F(ServerTest, InfoNamesTheEndpoints) {
  EXPECT_EQ(
      ask(get("/v1")).body,
      R"({"name":"ingle","version":"1.2.3","model":"tiny","endpoints":[)"
      R"("/health","/metrics","/stats","/v1","/v1/models",)"
      R"("/v1/adapters","/v1/adapters/available","/v1/chat/completions",)"
      R"("/v1/completions","/tokenize","/detokenize","/apply-template"]})");
}

TEST_F(ServerTest, chat_nonstream_shape) {
  FakeScript script;
  script.end.stats.cached_tokens = 4;
  generator_.set_script(script);
  const TestResponse response = ask(post(
      "/v1/chat/completions",
      chat_body(R"(,"max_tokens":9,"stop":"x","model":"any")")));
  EXPECT_EQ(response.status, 200);
  const std::string id = response.headers.at("x-request-id");
  EXPECT_EQ(id.size(), 36u);
  EXPECT_EQ(
      response.body,
      R"({"id":"chatcmpl-)" + id +
          R"(","object":"chat.completion","created":1700000000,)"
          R"("model":"tiny","choices":[{"index":0,"message":)"
          R"({"role":"assistant","content":"Paris"},)"
          R"("finish_reason":"stop"}],"usage":{"prompt_tokens":6,)"
          R"("completion_tokens":2,"total_tokens":8,)"
          R"("prompt_tokens_details":{"cached_tokens":4},)"
          R"("completion_tokens_details":{"reasoning_tokens":0}}})");
  const GenerationRequest asked = generator_.last_request();
  EXPECT_EQ(asked.max_tokens, 9);
  EXPECT_EQ(asked.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(asked.prompt.size(), 6u);
}

TEST_F(ServerTest, chat_stream_grammar) {
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  const TestResponse response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(response.headers.at("cache-control"), "no-cache");
  EXPECT_EQ(response.headers.at("connection"), "keep-alive");
  const std::string head = R"(data: {"id":"chatcmpl-)" +
      response.headers.at("x-request-id") +
      R"(","object":"chat.completion.chunk","created":1700000000,)"
      R"("model":"tiny","choices":[{"index":0,"delta":)";
  EXPECT_EQ(
      response.body,
      head + R"({"role":"assistant","content":""},"finish_reason":null}]})" +
          "\n\n" + head + R"({"content":"Par"},"finish_reason":null}]})" +
          "\n\n" + head + R"({"content":"is"},"finish_reason":null}]})" +
          "\n\n" + head +
          R"({},"finish_reason":"stop"}],"usage":{"prompt_tokens":6,)"
          R"("completion_tokens":2,"total_tokens":8,)"
          R"("prompt_tokens_details":{"cached_tokens":0},)"
          R"("completion_tokens_details":{"reasoning_tokens":0}}})"
          "\n\ndata: [DONE]\n\n");
  client.send(get("/health"));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(ServerTest, StreamShowsEachTokenAsItComes) {
  FakeScript script;
  script.pieces = {"one", "two"};
  script.hold_after = 1;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/completions", R"({"prompt":"x","stream":true})"));
  EXPECT_TRUE(client.read_until("one").ends_with("one"));
  generator_.release();
  EXPECT_TRUE(client.read_until("two").ends_with("two"));
}

TEST_F(ServerTest, StreamHeadComesBeforeTheFirstToken) {
  FakeScript script;
  script.hold_after = 0;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  EXPECT_TRUE(client.read_until("\"assistant\"").starts_with("HTTP/1.1 200 "));
  generator_.release();
  EXPECT_TRUE(client.read_until("[DONE]").ends_with("[DONE]"));
}

TEST_F(ServerTest, OldClientsGetAStreamWithoutChunks) {
  TestClient client(port());
  const std::string body = R"({"prompt":"x","stream":true})";
  client.send(
      "POST /v1/completions HTTP/1.0\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  const TestResponse response = client.read_response();
  EXPECT_EQ(response.headers.count("transfer-encoding"), 0u);
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(response.body.starts_with("data: {"));
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(ServerTest, completions_prompt_validation) {
  const TestResponse good = ask(post("/v1/completions", R"({"prompt":"abc"})"));
  EXPECT_EQ(good.status, 200);
  EXPECT_NE(good.body.find(R"("text":"Paris")"), std::string::npos);
  EXPECT_EQ(generator_.last_request().max_tokens, 512);
  const std::vector<TokenId> text = generator_.last_request().prompt;
  EXPECT_EQ(ask(post("/v1/completions", R"({"prompt":["abc"]})")).status, 200);
  EXPECT_EQ(generator_.last_request().prompt, text);
  EXPECT_EQ(ask(post("/v1/completions", R"({"prompt":[7,0,7]})")).status, 200);
  EXPECT_EQ(generator_.last_request().prompt, (std::vector<TokenId>{7, 0, 7}));
  for (const auto& [bad, path] :
       std::vector<std::pair<std::string, std::string>>{
           {R"({})", "prompt"},
           {R"({"prompt":null})", "prompt"},
           {R"({"prompt":""})", "prompt"},
           {R"({"prompt":7})", "prompt"},
           {R"({"prompt":{"text":"a"}})", "prompt"},
           {R"({"prompt":[]})", "prompt"},
           {R"({"prompt":[""]})", "prompt[0]"},
           {R"({"prompt":[1,-1]})", "prompt[1]"},
           {R"({"prompt":[1,2.0]})", "prompt[1]"},
           {R"({"prompt":[1,"a"]})", "prompt[1]"},
           {R"({"prompt":[2147483648]})", "prompt[0]"},
           {R"({"prompt":[[1],[]]})", "prompt[1]"}}) {
    const TestResponse response = ask(post("/v1/completions", bad));
    EXPECT_EQ(response.status, 400) << bad;
    EXPECT_NE(
        response.body.find(R"("param":")" + path + "\""), std::string::npos)
        << bad << " " << response.body;
  }
  expect_still_serving();
}

TEST_F(ServerTest, malformed_json_400) {
  TestClient client(port());
  for (const std::string& body :
       {std::string("{\"messages\":"),
        std::string(),
        chat_body() + "x",
        std::string(
            "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}"),
        std::string(100000, '[')}) {
    client.send(post("/v1/chat/completions", body));
    const TestResponse response = client.read_response();
    EXPECT_EQ(response.status, 400);
    EXPECT_NE(
        response.body.find(R"("type":"invalid_request_error")"),
        std::string::npos);
  }
  // The connection survives what is wrong with a body.
  client.send(post("/v1/chat/completions", chat_body()));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(ServerTest, empty_messages_400) {
  const TestResponse response =
      ask(post("/v1/chat/completions", R"({"messages":[]})"));
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(
      response.body,
      R"({"error":{"message":"messages: expected at least one message, got )"
      R"(an empty array",)"
      R"("type":"invalid_request_error","param":"messages","code":null}})");
  expect_still_serving();
}

TEST_F(ServerTest, stream_error_event_then_close) {
  FakeScript script;
  script.pieces = {"Par"};
  script.end.status = Status::internal("the step failed");
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  const TestResponse response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  EXPECT_TRUE(response.body.ends_with(
      "data: {\"error\":{\"message\":\"internal error, request " +
      response.headers.at("x-request-id") +
      "\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n"));
  EXPECT_EQ(response.body.find("the step failed"), std::string::npos);
  EXPECT_EQ(response.body.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(client.at_end());
  expect_still_serving();
}

TEST_F(ServerTest, FailedGenerationIs500AndItsCauseIsOnlyLogged) {
  FakeScript script;
  script.end.status = Status::internal("the step failed");
  generator_.set_script(script);
  for (const char* fields : {"", R"(,"stream":true)"}) {
    testing::internal::CaptureStderr();
    set_log_level(LogLevel::kError);
    const TestResponse response =
        ask(post("/v1/chat/completions", chat_body(fields)));
    set_log_level(LogLevel::kOff);
    const std::string log = testing::internal::GetCapturedStderr();
    const std::string request =
        "request " + response.headers.at("x-request-id");
    EXPECT_EQ(response.status, *fields == '\0' ? 500 : 200);
    EXPECT_NE(
        response.body.find("\"internal error, " + request), std::string::npos);
    EXPECT_EQ(response.body.find("the step failed"), std::string::npos);
    EXPECT_NE(log.find(request + ": the step failed\n"), std::string::npos)
        << log;
  }
  expect_still_serving();
}

TEST_F(ServerTest, FullQueueIs503AlsoForAStream) {
  FakeScript script;
  script.refusal =
      Status::overloaded("256 requests wait").with_reason("queue_full");
  generator_.set_script(script);
  for (const char* fields : {"", R"(,"stream":true)"}) {
    const TestResponse response =
        ask(post("/v1/chat/completions", chat_body(fields)));
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.headers.at("retry-after"), "1");
    EXPECT_NE(response.body.find("\"queue_full\""), std::string::npos);
  }
  expect_still_serving();
}

TEST_F(ServerTest, ExceptionIs500WithTheRequestId) {
  FakeScript script;
  script.throws = true;
  generator_.set_script(script);
  TestClient client(port());
  client.send(post("/v1/chat/completions", chat_body(R"(,"stream":true)")));
  const TestResponse response = client.read_response();
  EXPECT_EQ(response.status, 500);
  EXPECT_NE(
      response.body.find(
          "internal error, request " + response.headers.at("x-request-id")),
      std::string::npos);
  EXPECT_EQ(response.body.find("a bug of ours"), std::string::npos);
  EXPECT_TRUE(client.at_end());
  expect_still_serving();
}

TEST_F(ServerTest, OneLogLineWithoutThePrompt) {
  testing::internal::CaptureStderr();
  set_log_level(LogLevel::kInfo);
  const TestResponse response =
      ask(post("/v1/completions?key=secret", R"({"prompt":"secret"})"));
  server_->stop();
  set_log_level(LogLevel::kOff);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(
      log.find(
          "POST /v1/completions 200 0 ms " +
          response.headers.at("x-request-id") +
          ", prompt 6: 0 from nothing, 6 read, diverged at 0; generated 2\n"),
      std::string::npos)
      << log;
  EXPECT_EQ(log.find("secret"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(ServerTest, ClientThatLeavesDuringTheLastWriteIsLoggedAs499) {
  FakeScript script;
  script.pieces.assign(1000, std::string(10000, 'x'));
  generator_.set_script(script);
  testing::internal::CaptureStderr();
  set_log_level(LogLevel::kInfo);
  {
    TestClient client(port(), /*receive_buffer=*/4096);
    client.send(post("/v1/chat/completions", chat_body()));
    client.read_until("HTTP/1.1 200 ");
  }
  server_->stop();
  set_log_level(LogLevel::kOff);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("POST /v1/chat/completions 499 "), std::string::npos)
      << log;
}

TEST_F(ServerTest, UnknownPathIs404) {
  for (const char* path : {"/", "/v2", "/v1/", "/health/", "/v1/models/"}) {
    const TestResponse response = ask(get(path));
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_NE(
        response.body.find("is no endpoint: GET /v1 lists those there are"),
        std::string::npos);
  }
}

TEST_F(ServerTest, LongPathIsCutInMessages) {
  const TestResponse response =
      ask(post("/v1/models/" + std::string(5000, 'x'), "{}"));
  EXPECT_EQ(response.status, 405);
  EXPECT_LT(response.body.size(), 300u);
}

TEST_F(ServerTest, WrongMethodIs405AndSaysWhichIsRight) {
  const TestResponse chat = ask(get("/v1/chat/completions"));
  EXPECT_EQ(chat.status, 405);
  EXPECT_EQ(chat.headers.at("allow"), "POST");
  const TestResponse health = ask(post("/health", "{}"));
  EXPECT_EQ(health.status, 405);
  EXPECT_EQ(health.headers.at("allow"), "GET, HEAD");
}

TEST_F(ServerTest, HeadHasNoBody) {
  TestClient client(port());
  client.send("HEAD /health HTTP/1.1\r\nHost: test\r\n\r\n");
  const TestResponse head = client.read_response(/*head_only=*/true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "16");
  client.send(get("/health?probe=1"));
  EXPECT_EQ(client.read_response().body, R"({"status": "ok"})");
}

TEST_F(ServerTest, ConnectionClosesWhenTheClientAsksForIt) {
  TestClient client(port());
  client.send("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_response().headers.at("connection"), "close");
  EXPECT_TRUE(client.at_end());
}

TEST_F(ServerTest, ChunkedRequestBodyIsRead) {
  const std::string body = chat_body();
  TestClient client(port());
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\n"
      "Transfer-Encoding: chunked\r\n\r\n3\r\n" +
      body.substr(0, 3) + "\r\n");
  char size[16];
  std::snprintf(size, sizeof(size), "%zx", body.size() - 3);
  client.send(std::string(size) + "\r\n" + body.substr(3) + "\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(ServerTest, ExpectedContinueIsGiven) {
  const std::string body = chat_body();
  const std::string whole =
      post("/v1/chat/completions", body, "Expect: 100-continue\r\n");
  TestClient client(port());
  client.send(whole.substr(0, whole.size() - body.size()));
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(body);
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInTurn) {
  FakeScript script;
  script.hold_after = 1;
  generator_.set_script(script);
  TestClient client(port());
  client.send(
      post("/v1/chat/completions", chat_body(R"(,"stream":true)")) +
      post("/v1/completions", R"({"prompt":"x"})"));
  EXPECT_TRUE(client.read_until("Par").ends_with("Par"));
  client.send(get("/health")); // while the first is answered
  generator_.release();
  client.read_until("0\r\n\r\n");
  EXPECT_NE(
      client.read_response().body.find("\"text_completion\""),
      std::string::npos);
  EXPECT_EQ(client.read_response().body, R"({"status": "ok"})");
  EXPECT_TRUE(generator_.cancelled().empty());
}

TEST(Server, PortInUseIsAClearMessage) {
  FakeGenerator generator;
  StoppedClock clock;
  ServerOptions options;
  options.port = 0;
  const auto first = Server::start(options, generator, clock);
  ASSERT_TRUE(first.is_ok());
  options.port = (*first)->port();
  const auto second = Server::start(options, generator, clock);
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(
      second.status().message(),
      "127.0.0.1:" + std::to_string(options.port) +
          " is in use by another program: stop it or choose another with "
          "--port");
}

// UBSan opens a pipe to look at a pointer, and calls it invalid where it can't.
#if defined(__SANITIZE_ADDRESS__)
#define SKIP_WITHOUT_DESCRIPTORS_FOR_THE_SANITIZER() \
  GTEST_SKIP() << "the sanitizer itself needs descriptors"
#else
#define SKIP_WITHOUT_DESCRIPTORS_FOR_THE_SANITIZER() static_cast<void>(0)
#endif

TEST(Server, StartWithoutDescriptorsIsAStatus) {
  SKIP_WITHOUT_DESCRIPTORS_FOR_THE_SANITIZER();
  FakeGenerator generator;
  StoppedClock clock;
  ServerOptions options;
  options.port = 0;
  StatusCode code;
  {
    const NoDescriptors none;
    code = Server::start(options, generator, clock).status().code();
  }
  EXPECT_EQ(code, StatusCode::kIo);
}

TEST_F(ServerTest, AcceptingGoesOnAfterItFailed) {
  SKIP_WITHOUT_DESCRIPTORS_FOR_THE_SANITIZER();
  const UniqueFd early(::socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_GE(early.get(), 0);
  testing::internal::CaptureStderr();
  set_log_level(LogLevel::kWarning);
  {
    const NoDescriptors none;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port());
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    ASSERT_EQ(::connect(early.get(), to, sizeof(address)), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  set_log_level(LogLevel::kOff);
  EXPECT_NE(
      testing::internal::GetCapturedStderr().find("was not accepted"),
      std::string::npos);
  expect_still_serving();
}

TEST(Server, OnlyLoopbackIsServed) {
  FakeGenerator generator;
  StoppedClock clock;
  ServerOptions options;
  options.port = 0;
  for (const char* host : {"0.0.0.0", "192.0.2.1"}) {
    options.host = host;
    const auto server = Server::start(options, generator, clock);
    ASSERT_FALSE(server.is_ok());
    EXPECT_EQ(
        server.status().message(),
        std::string(host) +
            " can be reached from other machines, which needs an API key: set "
            "INGLE_API_KEY or give --api-key-file, or use --host 127.0.0.1");
  }
  options.host = "no such host";
  EXPECT_EQ(
      Server::start(options, generator, clock).status().code(),
      StatusCode::kIo);
  options.host = "localhost";
  EXPECT_TRUE(Server::start(options, generator, clock).is_ok());
}

} // namespace
} // namespace ingle
