// The server and the engine under many clients, some of which behave badly:
// nobody gets what is another's, nothing is left over, nothing grows.
//
// Seeds are fixed, so every run does the same things, if not in the same order.
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/log.h"
#include "engine/engine.h"
#include "http/server.h"
#include "load_client.h"
#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

constexpr int kClients = 64;
constexpr int kCanaries = 24;
constexpr auto kPatience = std::chrono::seconds(60);
constexpr size_t kMegabyte = size_t{1} << 20;

std::chrono::seconds load_time() {
  return std::chrono::seconds(
      std::getenv("INGLE_TEST_LONG") != nullptr ? 60 : 10);
}

size_t resident_bytes() {
  ::malloc_trim(0); // what is freed and kept is no growth
  std::ifstream file("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

class LoadTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    ASSERT_TRUE(write_tiny_llama(*fs_, "/tiny", {.tokenizer = true}).is_ok());
    EngineOptions engine;
    engine.model_folder = "/tiny";
    engine.run.threads = 2;
    engine.prompt_cache_bytes = 4 * kMegabyte; // less than there is to keep
    engine_.emplace(std::move(engine), *fs_, clock_);
    const Status loaded = engine_->wait_until_loaded();
    ASSERT_TRUE(loaded.is_ok()) << loaded.message();
    ServerOptions options;
    options.port = 0;
    auto started = Server::start(std::move(options), *engine_, clock_);
    ASSERT_TRUE(started.is_ok()) << started.status().message();
    server_ = *std::move(started);
    learn_canaries();
  }

  uint16_t port() const {
    return server_->port();
  }

  // Asks for each alone; some share their beginnings.
  void learn_canaries() {
    for (int i = 0; i < kCanaries; ++i) {
      const std::string shared(static_cast<size_t>(i % 4) * 60, 'q');
      const std::string prompt = shared + " the word of client " +
          std::to_string(1000 + i * 37) + " is";
      const auto texts = answer_texts(exchange(
          port(), post("/v1/completions", completion_body(prompt, 24))));
      ASSERT_EQ(texts.size(), 1u);
      canaries_.push_back({prompt, texts[0]});
    }
    for (int i = 1; i < kCanaries; ++i) { // or mixing them up would not show
      ASSERT_NE(canaries_[0].answer, canaries_[static_cast<size_t>(i)].answer);
    }
  }

  // All clients act until the time is over.
  LoadCounts run_clients(std::chrono::milliseconds time, uint64_t seed) {
    const auto deadline = std::chrono::steady_clock::now() + time;
    std::vector<LoadClient> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back(port(), seed + static_cast<uint64_t>(i), canaries_);
    }
    std::vector<std::thread> threads;
    for (LoadClient& client : clients) {
      threads.emplace_back([&client, deadline] {
        do {
          client.act();
        } while (std::chrono::steady_clock::now() < deadline &&
                 !testing::Test::HasFailure());
      });
    }
    LoadCounts counts;
    for (int i = 0; i < kClients; ++i) {
      threads[static_cast<size_t>(i)].join();
      counts += clients[static_cast<size_t>(i)].counts();
    }
    return counts;
  }

  bool wait_until(const std::function<bool(const EngineStats&)>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!holds(engine_->stats())) {
      if (std::chrono::steady_clock::now() > deadline) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  bool wait_until_idle() {
    return wait_until([](const EngineStats& stats) {
      return stats.queued + stats.running() == 0;
    });
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  SystemClock clock_;
  std::optional<Engine> engine_;
  std::unique_ptr<Server> server_; // before the engine
  std::vector<Canary> canaries_;
};

TEST_F(LoadTest, ManyClientsGetTheirOwnAnswersAndLeaveAnIdleServer) {
  const LoadCounts counts = run_clients(load_time(), 1);
  EXPECT_GT(counts.canaries, 0u);
  EXPECT_GT(counts.refused, 0u);
  EXPECT_GT(counts.left, 0u);
  EXPECT_GT(counts.others, 0u);
  RecordProperty("canaries", std::to_string(counts.canaries));

  ASSERT_TRUE(wait_until_idle());
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.finished.failed, 0u);
  EXPECT_GE(stats.finished.length, counts.canaries + 3 * counts.others);
  EXPECT_EQ(exchange(port(), get("/health")).status, 200);
  LoadClient after(port(), 0, canaries_);
  for (const Canary& canary : canaries_) {
    after.check_canary(canary, /*stream=*/false);
  }
}

TEST_F(LoadTest, DisconnectAtAnyPointEndsItsGenerationAlone) {
  LoadClient bystander(port(), 0, canaries_);
  LoadClient leaver(port(), 7, canaries_);
  for (const Leaving where :
       {Leaving::kAtOnce,
        Leaving::kInPrompt,
        Leaving::kInAnswer,
        Leaving::kAfterLastToken}) {
    for (int i = 0; i < 5; ++i) {
      leaver.leave(where);
      bystander.check_canary(canaries_[0], /*stream=*/true);
    }
    EXPECT_TRUE(wait_until_idle());
  }
  EXPECT_EQ(engine_->stats().finished.failed, 0u);
}

TEST_F(LoadTest, ClientThatLeftLongAgoHoldsNothing) {
  const std::string endless =
      completion_body("once", 480, R"("stream": true, "n": 16)");
  const uint64_t before = engine_->stats().finished.cancelled;
  TestClient client(port());
  client.wait_at_most(kPatience);
  client.send(post("/v1/completions", endless));
  client.read_until("\"text\"");
  client.reset();
  EXPECT_TRUE(wait_until([&](const EngineStats& stats) {
    return stats.finished.cancelled > before &&
        stats.queued + stats.running() == 0;
  }));
}

TEST_F(LoadTest, MemoryComesToRest) {
  if (std::string_view(INGLE_SANITIZED) != "") {
    GTEST_SKIP() << "a sanitizer keeps what is freed";
  }
  run_clients(load_time() / 2, 100); // what is made once
  ASSERT_TRUE(wait_until_idle());
  const size_t first = resident_bytes();
  const LoadCounts counts = run_clients(load_time(), 200);
  ASSERT_TRUE(wait_until_idle());
  const size_t last = resident_bytes();
  const size_t growth = last > first ? last - first : 0;
  // Of a thousand requests; had they left their states, it were a hundred.
  EXPECT_LT(growth, 8 * kMegabyte)
      << "after " << counts.canaries + counts.left + counts.others
      << " generations";
}

} // namespace
} // namespace ingle
