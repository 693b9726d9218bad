#include "cli/progress_bar.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <unistd.h>

namespace ingle {
namespace {

constexpr int kWidth = 30; // characters between the brackets

ProgressBar::Write terminal() {
  if (isatty(STDERR_FILENO) == 0) {
    return {};
  }
  return [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
}

int percent_of(uint64_t done, uint64_t total) {
  if (total == 0 || done >= total) {
    return 100;
  }
  return static_cast<int>(
      100 * static_cast<double>(done) / static_cast<double>(total));
}

std::string drawing(const std::string& label, int percent) {
  std::string bar(kWidth, ' ');
  std::fill_n(bar.begin(), kWidth * percent / 100, '#');
  std::array<char, 8> number{};
  std::snprintf(number.data(), number.size(), "%3d%%", percent);
  return "\r" + label + " [" + bar + "] " + number.data();
}

} // namespace

ProgressBar::ProgressBar(std::string label, const Clock& clock)
    : ProgressBar(std::move(label), clock, terminal()) {}

ProgressBar::ProgressBar(std::string label, const Clock& clock, Write write)
    : label_(std::move(label)),
      clock_(clock),
      start_(clock.now()),
      write_(std::move(write)) {}

ProgressBar::~ProgressBar() {
  finish();
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  const int percent = percent_of(done, total);
  MutexLock lock(mutex_);
  if (!write_ || percent == shown_percent_ || clock_.now() - start_ < kDelay) {
    return;
  }
  shown_percent_ = percent;
  write_(drawing(label_, percent));
}

void ProgressBar::finish() {
  MutexLock lock(mutex_);
  if (shown_percent_ >= 0) {
    write_("\r\033[K");
    shown_percent_ = -1;
  }
  write_ = {};
}

} // namespace ingle
