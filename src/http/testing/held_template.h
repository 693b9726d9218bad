// A chat template that takes its time; for tests.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "text/chat_template.h"

namespace ingle {

// Renders nothing until it is told to.
class HeldTemplate final : public ChatTemplate {
 public:
  Result<std::string> render(std::string_view) const override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return released_; });
    return std::string("hello");
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  // Until so many wait here.
  void wait_for(int count) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int waiting_ = 0;
  bool released_ = false;
};

} // namespace ingle
