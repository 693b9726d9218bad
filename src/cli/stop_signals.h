// Ctrl-C and SIGTERM as a call on a thread of their own.
#pragma once

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>

#include "base/unique_fd.h"

namespace ingle {

enum class SignalUse {
  // The first SIGINT or SIGTERM calls back, and the second ends the process at
  // once with exit code 130.
  kStop,
  // Every SIGINT calls back.
  kInterrupt,
};

// Calls `on_signal` while it lives. At most one at a time.
//
// A handler that writes to a pipe, not a blocked signal that a thread waits
// for: libraries start threads before main(), where nothing is blocked yet.
class StopSignals {
 public:
  explicit StopSignals(
      std::function<void()> on_signal,
      SignalUse use = SignalUse::kStop);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void wait();

  std::function<void()> on_signal_;
  UniqueFd read_end_;
  UniqueFd write_end_;
  const SignalUse use_;
  // What was done about each signal before.
  std::vector<std::pair<int, struct sigaction>> before_;
  std::thread thread_;
};

} // namespace ingle
