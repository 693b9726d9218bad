// A hub in memory, and a model in it; for tests.
//
// Threads: one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hub/http_client.h"
#include "hub/hub.h"
#include "hub/repo_lock.h"

namespace ingle {

// Of the model "org/tiny" at revision main.
inline constexpr std::string_view kTinyRepo = "org/tiny";
inline constexpr std::string_view kTinyCommit =
    "0123456789abcdef0123456789abcdef01234567";

struct FakeAnswer {
  HttpHead head;
  std::string body;
  // Bytes after which the connection ends; nothing: it does not.
  std::optional<size_t> cut_after;
};

// Large files ("*.safetensors") are at another host, as on the public hub.
class FakeHub final : public HttpClient {
 public:
  static constexpr const char* kEndpoint = "https://hub.example";
  static constexpr const char* kOther = "https://cdn.example";

  // With config.json, tokenizer.json and weights.
  FakeHub();

  Result<HttpHead> exchange(
      const HttpRequest& request,
      const HttpBody& body,
      const std::stop_token& stop) override;

  // What a test changes: the files of the commit, by path ...
  std::map<std::string, std::string> files;
  std::string commit{kTinyCommit};
  // ... and what is wrong with an answer.
  std::function<void(const HttpRequest&, FakeAnswer&)> misbehave;

  std::vector<HttpRequest> requests; // that came

  // Settings that have `token`; waits are noted, not waited.
  HubSettings settings(std::string token = {});
  std::vector<std::chrono::seconds> waits;

  // How often files were asked for (GET, at either host).
  size_t downloads() const;

 private:
  FakeAnswer answer(const HttpRequest& request) const;
  FakeAnswer file_answer(const HttpRequest& request, const std::string& path)
      const;
};

std::string etag_of(const std::string& path, const std::string& content);

// A safetensors file with one tensor.
std::string tiny_safetensors();

class FakeClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return std::chrono::steady_clock::time_point(time_);
  }
  std::chrono::milliseconds since_epoch() const override {
    return std::chrono::hours(24 * 365) + time_;
  }
  void advance(std::chrono::milliseconds by) {
    time_ += by;
  }

 private:
  std::chrono::milliseconds time_{};
};

// This process is number 7 on "here", where only 7 and 8 run.
Processes fake_processes();

} // namespace ingle
