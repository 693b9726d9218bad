// Keys and values in a buffer of our own, in the blocks that the CPU kernels
// write and read (kernels/kv_layout.h). Blocks stand at absolute positions: a
// window's cache forgets whole ones.
//
// Snapshots and restored caches share the buffer. Of those who share it, the
// one whose rows end where the buffer's do appends in place; another copies
// first. A step that fails leaves nothing behind: its rows are forgotten.
#pragma once

#include <algorithm>

#include "cache/kv_cache.h"
#include "cache/kv_window.h"
#include "kernels/arena.h"
#include "kernels/kv_layout.h"

namespace ingle {

class BlockKvCache final : public KvCache {
 public:
  // Requires: head_dim <= kMaxQuantizedDim where it has 8 or 4 bits.
  BlockKvCache(int kv_heads, KvBlockShape shape, int window = 0)
      : kv_heads_(kv_heads), shape_(shape), window_(window) {}

  int64_t offset() const override {
    return offset_;
  }
  int64_t begin() const override {
    return first_block() * kBlockPositions;
  }
  int64_t capacity() const override;
  size_t bytes() const override;
  size_t bytes_for(int64_t positions, int step) const override;
  void add_buffers(KvBuffers& buffers) const override;
  std::string scheme() const override;
  // Throws std::bad_alloc, as does extend(). The pages are the system's promise
  // until they are written.
  void reserve(int64_t positions) override;
  void release_unused() override;
  int64_t pending() const override {
    return pending_;
  }
  std::vector<mx::array> pending_arrays() const override {
    return {}; // what writes them is the state's to know
  }
  void commit() override;
  bool roll_back() override;
  bool forgets() const override {
    return window_.forgets();
  }
  int64_t first_resume_point() const override {
    return std::min(offset_, window_.first_resume_point(begin()));
  }
  void trim(int64_t position) override;
  std::shared_ptr<const KvLayerSnapshot> snapshot(
      int64_t length) const override;

  // What extend() has given blocks of: for those who write them later.
  std::shared_ptr<const void> buffer() const {
    return buffer_;
  }

  // Adds `positions` rows to the pending step, for the kernels to write.
  // Gives the blocks [position / 256 - first_block()][kv_heads]; they stay
  // where they are until the next extend() or reserve(). What writes them is
  // told to the KvState.
  std::byte* extend(int64_t positions);
  // The number of the buffer's first block.
  int64_t first_block() const {
    return buffer_ == nullptr ? 0 : buffer_->first_block;
  }

 private:
  struct Buffer {
    PageBuffer pages;
    int64_t first_block = 0;
    int64_t written = 0; // the last row's end; whose rows end here may append

    // Of the blocks that have rows.
    size_t used_bytes(size_t block_bytes) const;
  };
  class Snapshot;

  // One that goes on at `offset` in another's buffer.
  BlockKvCache(const BlockKvCache& other, int64_t offset)
      : kv_heads_(other.kv_heads_),
        shape_(other.shape_),
        window_(other.window_),
        buffer_(other.buffer_),
        offset_(offset) {}

  size_t block_bytes() const {
    return static_cast<size_t>(kv_heads_) * shape_.bytes();
  }
  int64_t first_block_needed() const {
    return window_.first_needed(offset_) / kBlockPositions;
  }
  void move_to_buffer_up_to(int64_t end);

  int kv_heads_;
  KvBlockShape shape_;
  KvWindow window_;
  std::shared_ptr<Buffer> buffer_; // null: capacity 0
  int64_t offset_ = 0;
  int64_t pending_ = 0;
};

} // namespace ingle
