// A server on an ephemeral port, with an engine that a test scripts.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/testing/fake_served_model.h"
#include "base/log.h"
#include "http/server.h"
#include "http/testing/fake_generator.h"
#include "http/testing/held_template.h"
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

  // From now on chats wait to be rendered until it is told to.
  std::shared_ptr<HeldTemplate> hold_templates() {
    auto held = std::make_shared<HeldTemplate>();
    auto model = std::make_shared<ServedModel>(make_fake_model());
    model->chat_template = held;
    generator_.set_model(std::move(model));
    return held;
  }
  // Clients that have each asked for a chat.
  std::vector<std::unique_ptr<TestClient>> send_chats(size_t count) {
    std::vector<std::unique_ptr<TestClient>> clients;
    while (clients.size() < count) {
      clients.push_back(std::make_unique<TestClient>(port()));
      clients.back()->send(post("/v1/chat/completions", chat_body()));
    }
    return clients;
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
