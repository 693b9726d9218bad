#include "cli/stop_signals.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

#include "cli/console.h"

namespace ingle {
namespace {

constexpr char kStop = 's';
constexpr char kDone = 'd';

// A handler has no argument of its own.
std::atomic<int> handler_pipe = -1;

void write_byte(int fd, char byte) {
  while (::write(fd, &byte, 1) < 0 && errno == EINTR) {
  }
}

void on_stop(int) {
  const int error = errno;
  write_byte(handler_pipe, kStop);
  errno = error;
}

} // namespace

StopSignals::StopSignals(std::function<void()> on_signal, SignalUse use)
    : on_signal_(std::move(on_signal)), use_(use) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    return; // out of descriptors: signals keep their default, which ends us
  }
  read_end_.reset(ends[0]);
  write_end_.reset(ends[1]);
  for (const int end : ends) {
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  handler_pipe = write_end_.get();
  thread_ = std::thread([this] { wait(); });

  struct sigaction action{};
  action.sa_handler = on_stop;
  action.sa_flags = SA_RESTART;
  const std::vector<int> numbers = use == SignalUse::kStop
      ? std::vector<int>{SIGINT, SIGTERM}
      : std::vector<int>{SIGINT};
  for (const int number : numbers) {
    ::sigaction(number, &action, &before_.emplace_back(number, action).second);
  }
}

StopSignals::~StopSignals() {
  if (!thread_.joinable()) {
    return;
  }
  for (const auto& [number, action] : before_) {
    ::sigaction(number, &action, nullptr);
  }
  write_byte(write_end_.get(), kDone);
  thread_.join();
}

void StopSignals::wait() {
  bool called = false;
  while (true) {
    char byte = kDone;
    if (::read(read_end_.get(), &byte, 1) < 0 && errno == EINTR) {
      continue;
    }
    if (byte == kDone) {
      return;
    }
    if (called && use_ == SignalUse::kStop) {
      std::_Exit(kInterrupted);
    }
    called = true;
    on_signal_();
  }
}

} // namespace ingle
