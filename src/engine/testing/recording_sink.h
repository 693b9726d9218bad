// A sink that keeps everything; for tests.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/generator.h"

namespace ingle {

// Threads: any; wait() from another one than the engine's.
class RecordingSink final : public GenerationSink {
 public:
  // `on_token`, which may be empty, is called for each on the engine thread.
  explicit RecordingSink(std::function<void(TokenId)> on_token = {})
      : on_token_(std::move(on_token)) {}

  void on_prefill(PrefillStep step) override {
    std::lock_guard lock(mutex_);
    prefills_.push_back(std::move(step));
  }
  void on_delta(GenerationDelta delta) override {
    {
      std::lock_guard lock(mutex_);
      text_ += delta.text;
      reasoning_ += delta.reasoning;
      for (const ToolCallPart& part : delta.tool_calls) {
        add_call(part);
      }
      for (const auto& token : delta.tokens) {
        tokens_.push_back(token);
      }
      changed_.notify_all();
    }
    for (const auto& token : delta.tokens) {
      if (on_token_) {
        on_token_(token.id);
      }
    }
  }
  void on_end(GenerationEnd end) override {
    std::lock_guard lock(mutex_);
    ++ends_;
    end_ = std::move(end);
    changed_.notify_all();
  }

  GenerationEnd wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return end_.has_value(); });
    return *end_;
  }
  void wait_for_tokens(size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tokens_.size() >= n || end_; });
  }
  std::vector<TokenId> ids() {
    std::lock_guard lock(mutex_);
    std::vector<TokenId> ids;
    for (const auto& token : tokens_) {
      ids.push_back(token.id);
    }
    return ids;
  }
  std::vector<GeneratedToken> tokens() {
    std::lock_guard lock(mutex_);
    return tokens_;
  }
  std::vector<PrefillStep> prefills() {
    std::lock_guard lock(mutex_);
    return prefills_;
  }
  std::string text() {
    std::lock_guard lock(mutex_);
    return text_;
  }
  std::string reasoning() {
    std::lock_guard lock(mutex_);
    return reasoning_;
  }
  // Their parts put together.
  std::vector<ToolCallPart> tool_calls() {
    std::lock_guard lock(mutex_);
    return tool_calls_;
  }
  // Calls of on_end(); it has to be 1.
  int ends() {
    std::lock_guard lock(mutex_);
    return ends_;
  }

 private:
  void add_call(const ToolCallPart& part) {
    if (!part.name.empty()) {
      tool_calls_.push_back(part);
      return;
    }
    tool_calls_.back().arguments += part.arguments;
    tool_calls_.back().end = part.end;
  }

  std::function<void(TokenId)> on_token_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<PrefillStep> prefills_;
  std::vector<GeneratedToken> tokens_;
  std::string text_;
  std::string reasoning_;
  std::vector<ToolCallPart> tool_calls_;
  std::optional<GenerationEnd> end_;
  int ends_ = 0;
};

} // namespace ingle
