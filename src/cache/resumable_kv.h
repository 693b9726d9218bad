// A sequence's KV state with the checkpoints that it can go back to.
//
// A state whose layers all keep every row can go back to any position, and has
// no checkpoints. One with a layer that forgets can't, but to where a
// checkpoint was taken: a reference to what the layer had there, not a copy.
//
// Threads: the engine thread.
#pragma once

#include <span>
#include <vector>

#include "cache/kv_state.h"

namespace ingle {

class ResumableKv {
 public:
  // How many checkpoints a sequence keeps: its first, which is the most shared
  // of them, and the newest.
  static constexpr size_t kMaxCheckpoints = 3;

  explicit ResumableKv(KvState state) : state_(std::move(state)) {}

  KvState& state() {
    return state_;
  }
  const KvState& state() const {
    return state_;
  }
  // Ascending.
  std::span<const KvCheckpoint> checkpoints() const {
    return checkpoints_;
  }
  std::vector<int64_t> checkpoint_positions() const;

  // Makes offset() a position to go back to, where it would not stay one.
  // Requires: nothing pending.
  void keep_checkpoint();
  // Forgets them all; their memory with them.
  void drop_checkpoints() {
    checkpoints_.clear();
  }

  // One of its own that goes on at `length`, with the checkpoints up to there;
  // rows are shared until one of the two appends to them.
  // Requires: a resume point: 0 < length <= offset(), from
  // first_resume_point() on or a checkpoint's.
  ResumableKv fork(int64_t length) const;

 private:
  KvState state_;
  std::vector<KvCheckpoint> checkpoints_;
};

} // namespace ingle
