// How far something is, on one line of a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"

namespace ingle {

// "loading [#####               ]  25%", redrawn in place, once the work has
// taken two seconds, and gone when it ends.
//
// Threads: any.
class ProgressBar {
 public:
  static constexpr std::chrono::seconds kDelay{2};

  using Write = std::function<void(std::string_view text)>;

  // On standard error; nowhere if that is no terminal. `clock` outlives the
  // bar.
  ProgressBar(std::string label, const Clock& clock);
  // As above, to `write`; empty: nowhere.
  ProgressBar(std::string label, const Clock& clock, Write write);
  ~ProgressBar(); // finish()
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(uint64_t done, uint64_t total);
  // Erases it. Later updates have no effect.
  void finish();

  // update(); not to be called once the bar is gone.
  std::function<void(uint64_t done, uint64_t total)> callback() {
    return [this](uint64_t done, uint64_t total) { update(done, total); };
  }

 private:
  const std::string label_;
  const Clock& clock_;
  const std::chrono::steady_clock::time_point start_;
  Mutex mutex_;
  Write write_ INGLE_GUARDED_BY(mutex_);
  int shown_percent_ INGLE_GUARDED_BY(mutex_) = -1; // negative: nothing
};

} // namespace ingle
