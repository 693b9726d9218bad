// A generation's output, handed from the engine thread to the main one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "engine/generator.h"

namespace ingle {

// Threads: the sink's calls on the engine's, the rest on one other.
class CollectingSink : public GenerationSink {
 public:
  void on_delta(GenerationDelta delta) override {
    MutexLock lock(mutex_);
    new_text_ += delta.text;
    for (auto& token : delta.tokens) {
      tokens_.push_back(std::move(token));
    }
    changed_.notify_all();
  }
  void on_end(GenerationEnd end) override {
    MutexLock lock(mutex_);
    end_ = std::move(end);
    changed_.notify_all();
  }

  // Blocks until there is more text; nothing once all of it was taken and the
  // generation is over.
  std::optional<std::string> next_text() {
    MutexLock lock(mutex_);
    while (new_text_.empty() && !end_) {
      changed_.wait(mutex_);
    }
    if (new_text_.empty()) {
      return std::nullopt;
    }
    return std::exchange(new_text_, {});
  }

  // How it ended; blocks until it has.
  GenerationEnd wait() {
    MutexLock lock(mutex_);
    while (!end_) {
      changed_.wait(mutex_);
    }
    return *end_;
  }
  std::vector<GeneratedToken> take_tokens() {
    MutexLock lock(mutex_);
    return std::move(tokens_);
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::string new_text_ INGLE_GUARDED_BY(mutex_);
  std::vector<GeneratedToken> tokens_ INGLE_GUARDED_BY(mutex_);
  std::optional<GenerationEnd> end_ INGLE_GUARDED_BY(mutex_);
};

} // namespace ingle
