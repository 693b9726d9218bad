// What the cache of a sliding-window layer keeps: not a ring, but the last rows
// in one run. When its buffer is full, those that are still needed move to a
// fresh one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ingle {

class KvWindow {
 public:
  // positions: that a position sees, its own included; 0: all.
  explicit KvWindow(int positions = 0) : positions_(positions) {}

  // The first position that a cache has to hold which goes on at `offset`.
  int64_t first_needed(int64_t offset) const {
    return positions_ == 0 ? 0 : std::max<int64_t>(0, offset - positions_);
  }
  bool forgets() const {
    return positions_ != 0;
  }
  // The first position at which a cache can go on that holds those from `begin`
  // on.
  int64_t first_resume_point(int64_t begin) const {
    return begin == 0 ? 0 : begin + positions_;
  }

  // The position up to which a buffer has room that starts at `begin` and is
  // made because there was none at `end`: by half, and at most by a window, so
  // that copies are amortised.
  int64_t grown_end(int64_t begin, int64_t end) const {
    const int64_t half = (end - begin) / 2;
    return end + (positions_ == 0 ? half : std::min<int64_t>(half, positions_));
  }
  // The most rows that a buffer has room for of a sequence of `positions` that
  // is read in pieces of `step`.
  int64_t most_held(int64_t positions, int step) const {
    const int64_t seen = int64_t{positions_} + step;
    return positions_ == 0
        ? positions
        : std::min(
              positions, std::max(grown_end(0, seen), int64_t{2} * positions_));
  }
  // As grown_end(), for one that is to hold a sequence of `positions`.
  int64_t reserved_end(int64_t begin, int64_t positions) const {
    return positions_ == 0
        ? positions
        : std::min<int64_t>(positions, begin + int64_t{2} * positions_);
  }

 private:
  int positions_;
};

} // namespace ingle
