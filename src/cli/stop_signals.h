// Ctrl-C and SIGTERM as a call on a thread of their own.
#pragma once

#include <array>
#include <functional>
#include <thread>

#include <signal.h>

#include "base/unique_fd.h"

namespace ingle {

// While it lives, the first SIGINT or SIGTERM calls `on_signal`, and the second
// ends the process at once with exit code 130. At most one at a time.
//
// A handler that writes to a pipe, not a blocked signal that a thread waits
// for: libraries start threads before main(), where nothing is blocked yet.
class StopSignals {
 public:
  explicit StopSignals(std::function<void()> on_signal);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void wait();

  std::function<void()> on_signal_;
  UniqueFd read_end_;
  UniqueFd write_end_;
  std::array<struct sigaction, 2> before_{};
  std::thread thread_;
};

} // namespace ingle
