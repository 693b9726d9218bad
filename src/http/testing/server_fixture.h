// A server on an ephemeral port, with an engine that a test scripts.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/log.h"
#include "http/server.h"
#include "http/testing/fake_generator.h"
#include "http/testing/test_client.h"

namespace ingle {

class StoppedClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return {};
  }
  std::chrono::milliseconds since_epoch() const override {
    return std::chrono::seconds(1700000000);
  }
};

class ServerFixture : public testing::Test {
 protected:
  ServerFixture() {
    set_log_level(LogLevel::kOff);
    options_.port = 0;
    options_.version = "1.2.3";
  }
  void start() {
    auto started = Server::start(options_, generator_, clock_);
    ASSERT_TRUE(started.is_ok()) << started.status().message();
    server_ = *std::move(started);
  }

  uint16_t port() const {
    return server_->port();
  }

  TestResponse ask(std::string_view request) {
    return exchange(port(), request);
  }

  // What every test of a hostile client ends with.
  void expect_still_serving() {
    generator_.set_script({});
    const TestResponse response =
        ask(post("/v1/chat/completions", chat_body()));
    EXPECT_EQ(response.status, 200);
    EXPECT_NE(response.body.find("\"content\":\"Paris\""), std::string::npos);
  }

  StoppedClock clock_;
  FakeGenerator generator_; // outlives the server
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

} // namespace ingle
