// Finds stop strings in text that comes in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ingle {

// Threads: one.
class StopMatcher {
 public:
  // Empty sequences are ignored. None: everything passes through at once.
  explicit StopMatcher(std::vector<std::string> sequences);

  // Text that is safe to show: what can't be the beginning of a stop string
  // any more. Once stopped() it returns nothing. The earliest match over all
  // sequences wins; text from it on is discarded.
  std::string push(std::string_view text);
  // What was withheld, when no more text comes. Nothing after a match.
  std::string flush();

  // True iff a stop string was found.
  bool stopped() const {
    return stopped_;
  }

 private:
  std::vector<std::string> sequences_;
  std::string pending_;
  bool stopped_ = false;
};

} // namespace ingle
