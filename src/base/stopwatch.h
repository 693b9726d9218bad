// How much of the time a part of the work takes.
#pragma once

#include <utility>

#include "base/clock.h"

namespace ingle {

// Adds up the time of what it is told to time.
//
// Threads: one. Its clock outlives it.
class Stopwatch {
 public:
  explicit Stopwatch(const Clock& clock) : clock_(clock) {}

  // fn(), whose time counts also where it throws.
  template <typename Fn>
  auto time(Fn&& fn) {
    const Lap lap(*this);
    return std::forward<Fn>(fn)();
  }

  std::chrono::steady_clock::duration total() const {
    return total_;
  }

 private:
  class Lap {
   public:
    explicit Lap(Stopwatch& watch)
        : watch_(watch), start_(watch.clock_.now()) {}
    Lap(const Lap&) = delete;
    Lap& operator=(const Lap&) = delete;
    ~Lap() {
      watch_.total_ += watch_.clock_.now() - start_;
    }

   private:
    Stopwatch& watch_;
    const std::chrono::steady_clock::time_point start_;
  };

  const Clock& clock_;
  std::chrono::steady_clock::duration total_{};
};

// fn(), whose time counts where there is a stopwatch.
template <typename Fn>
auto time_with(Stopwatch* stopwatch, Fn&& fn) {
  return stopwatch != nullptr ? stopwatch->time(std::forward<Fn>(fn))
                              : std::forward<Fn>(fn)();
}

} // namespace ingle
