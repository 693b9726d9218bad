// Finds stop strings in text that comes in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ingle {

// How the text is cut into pieces makes no difference to what comes out.
//
// Cost:    linear in the text, times the number of sequences.
// Threads: one.
class StopMatcher {
 public:
  // Empty sequences are ignored. None: everything passes through at once.
  explicit StopMatcher(std::vector<std::string> sequences);

  // Text that is safe to show: what can't be the beginning of a stop string
  // any more. Once stopped() it returns nothing. The sequence that is complete
  // first wins, the longest of those that end at the same byte; text from its
  // beginning on is discarded.
  std::string push(std::string_view text);
  // What was withheld, when no more text comes. Nothing after a match.
  std::string flush();

  // True iff a stop string was found.
  bool stopped() const {
    return stopped_;
  }

 private:
  // Knuth-Morris-Pratt: how far the text's end matches one sequence.
  struct Sequence {
    explicit Sequence(std::string text);
    void advance(char byte);
    bool complete() const {
      return matched == text.size();
    }

    std::string text; // not empty
    // By length of a matched prefix: the length of its longest proper prefix
    // that is also its end.
    std::vector<size_t> fallback;
    size_t matched = 0; // bytes
  };

  std::vector<Sequence> sequences_;
  std::string pending_;
  bool stopped_ = false;
};

} // namespace ingle
