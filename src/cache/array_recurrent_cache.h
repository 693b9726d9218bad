// The cache of a recurrent layer in MLX arrays: one state of a fixed size,
// which each position changes.
//
// A step makes new arrays of the committed ones, which stay as they are: a
// snapshot is a reference to them, and so is what a failed step leaves.
#pragma once

#include <limits>
#include <optional>

#include <mlx/dtype.h>

#include "cache/kv_cache.h"

namespace ingle {

// What one layer's cache has to hold.
struct RecurrentShape {
  int conv_rows = 0; // that a short convolution looks back on
  int channels = 0;
  int heads = 0;
  int value_dim = 0;
  int key_dim = 0;
  mx::Dtype dtype = mx::float32; // of the convolution's rows
};

struct RecurrentArrays {
  mx::array conv; // [conv_rows, channels]
  mx::array heads; // [heads, value_dim, key_dim] in f32
};

class ArrayRecurrentCache final : public KvCache {
 public:
  explicit ArrayRecurrentCache(RecurrentShape shape) : shape_(shape) {}

  int64_t offset() const override {
    return offset_;
  }
  int64_t begin() const override {
    return offset_; // no position has rows
  }
  int64_t capacity() const override {
    return std::numeric_limits<int64_t>::max();
  }
  size_t bytes() const override;
  // While a step is pending, which is when it takes most.
  size_t bytes_for(int64_t positions, int step) const override;
  void add_buffers(KvBuffers& buffers) const override;
  std::string scheme() const override {
    return "state";
  }
  void reserve(int64_t) override {}
  void release_unused() override {}
  int64_t pending() const override {
    return pending_;
  }
  std::vector<mx::array> pending_arrays() const override;
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

  // What the next position sees, after those of the pending step; all zero
  // where nothing was read.
  RecurrentArrays state() const;
  // Adds `positions` to the pending step, after which the state is this.
  void advance(RecurrentArrays state, int64_t positions);

 private:
  class Snapshot;

  ArrayRecurrentCache(
      RecurrentShape shape,
      std::optional<RecurrentArrays> committed,
      int64_t offset)
      : shape_(shape), committed_(std::move(committed)), offset_(offset) {}

  RecurrentShape shape_;
  std::optional<RecurrentArrays> committed_; // none: nothing was read
  std::optional<RecurrentArrays> next_; // of the pending step
  int64_t offset_ = 0;
  int64_t pending_ = 0;
};

} // namespace ingle
