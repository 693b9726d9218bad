// The cache of a recurrent layer in buffers of our own, as the CPU kernels read
// and write it: one state of a fixed size, which each position changes.
//
// A step reads the committed state and writes another buffer; commit() swaps
// the two, and a step that fails leaves the first as it was. No state is ever
// copied: a snapshot shares the committed one, and where the buffer that is
// next to be written is a snapshot's, the step gets a fresh one.
#pragma once

#include <limits>

#include "cache/kv_cache.h"
#include "kernels/arena.h"

namespace ingle {

class RecurrentCache final : public KvCache {
 public:
  // All zero where nothing was read yet.
  explicit RecurrentCache(size_t state_bytes) : state_bytes_(state_bytes) {}

  int64_t offset() const override {
    return offset_;
  }
  int64_t begin() const override {
    return offset_; // no position has rows
  }
  int64_t capacity() const override {
    return std::numeric_limits<int64_t>::max();
  }
  // Of both buffers.
  size_t bytes() const override;
  size_t bytes_for(int64_t, int) const override {
    return 2 * state_bytes_;
  }
  void add_buffers(KvBuffers& buffers) const override;
  std::string scheme() const override {
    return "state";
  }
  // Throws std::bad_alloc, as does extend().
  void reserve(int64_t positions) override;
  void release_unused() override {
    next_.reset();
  }
  int64_t pending() const override {
    return pending_;
  }
  std::vector<mx::array> pending_arrays() const override {
    return {}; // what writes the state is the KvState's to know
  }
  void commit() override;
  bool roll_back() override;
  bool forgets() const override {
    return true;
  }
  // What was forgotten is in the state: only where it stands.
  int64_t first_resume_point() const override {
    return offset_;
  }
  void trim(int64_t position) override;
  std::shared_ptr<const KvLayerSnapshot> snapshot(
      int64_t length) const override;

  using Buffer = std::shared_ptr<const PageBuffer>;

  // Where the kernels find the state before some positions, and leave it after
  // them: the same place where the step had some already.
  struct Step {
    const std::byte* before = nullptr;
    std::byte* after = nullptr;
  };

  // Adds `positions` to the pending step. What writes `after` is told to the
  // KvState.
  Step extend(int64_t positions);
  // Of what extend() gave: for those who read and write it later.
  std::vector<Buffer> buffers() const {
    return {committed_, next_};
  }

 private:
  class Snapshot;

  RecurrentCache(
      size_t state_bytes,
      std::shared_ptr<PageBuffer> committed,
      int64_t offset)
      : state_bytes_(state_bytes),
        committed_(std::move(committed)),
        offset_(offset) {}

  void allocate();

  size_t state_bytes_;
  std::shared_ptr<PageBuffer> committed_; // null: nothing was read, all zero
  std::shared_ptr<PageBuffer> next_; // what the pending step writes, or null
  int64_t offset_ = 0;
  int64_t pending_ = 0;
};

} // namespace ingle
