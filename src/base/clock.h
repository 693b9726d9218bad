// Time is an argument: constructed in main() and passed down.
#pragma once

#include <chrono>

namespace ingle {

// Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic; for durations and deadlines.
  virtual std::chrono::steady_clock::time_point now() const = 0;
  // Wall time since the Unix epoch; for what users read ("created").
  virtual std::chrono::milliseconds since_epoch() const = 0;
};

class SystemClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return std::chrono::steady_clock::now();
  }
  std::chrono::milliseconds since_epoch() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
  }
};

} // namespace ingle
