#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace ingle {

StopMatcher::Sequence::Sequence(std::string sequence)
    : text(std::move(sequence)), fallback(text.size() + 1) {
  for (size_t i = 1, length = 0; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) {
      length = fallback[length];
    }
    if (text[i] == text[length]) {
      ++length;
    }
    fallback[i + 1] = length;
  }
}

void StopMatcher::Sequence::advance(char byte) {
  while (matched > 0 && text[matched] != byte) {
    matched = fallback[matched];
  }
  if (text[matched] == byte) {
    ++matched;
  }
}

StopMatcher::StopMatcher(std::vector<std::string> sequences) {
  for (std::string& sequence : sequences) {
    if (!sequence.empty()) {
      sequences_.emplace_back(std::move(sequence));
    }
  }
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) {
    return {};
  }
  size_t withheld = 0; // bytes at the end of pending_
  for (char byte : text) {
    pending_.push_back(byte);
    withheld = 0;
    for (Sequence& sequence : sequences_) {
      sequence.advance(byte);
      withheld = std::max(withheld, sequence.matched);
      stopped_ |= sequence.complete();
    }
    if (stopped_) {
      break;
    }
  }
  if (text.empty()) {
    return {};
  }
  if (stopped_) {
    size_t length = 0;
    for (const Sequence& sequence : sequences_) {
      length = std::max(length, sequence.complete() ? sequence.matched : 0);
    }
    pending_.resize(pending_.size() - length);
    return std::exchange(pending_, {});
  }
  std::string safe = pending_.substr(0, pending_.size() - withheld);
  pending_.erase(0, safe.size());
  return safe;
}

std::string StopMatcher::flush() {
  for (Sequence& sequence : sequences_) {
    sequence.matched = 0;
  }
  return std::exchange(pending_, {});
}

} // namespace ingle
