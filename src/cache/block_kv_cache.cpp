#include "cache/block_kv_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ingle {
namespace {

int64_t blocks_for(int64_t positions) {
  return (positions + kBlockPositions - 1) / kBlockPositions;
}

} // namespace

class BlockKvCache::Snapshot final : public KvLayerSnapshot {
 public:
  explicit Snapshot(BlockKvCache cache) : cache_(std::move(cache)) {}
  int64_t length() const override {
    return cache_.offset();
  }
  std::unique_ptr<KvCache> restore() const override {
    return std::unique_ptr<KvCache>(new BlockKvCache(cache_, length()));
  }
  void add_buffers(KvBuffers& buffers) const override {
    cache_.add_buffers(buffers);
  }

 private:
  BlockKvCache cache_;
};

int64_t BlockKvCache::capacity() const {
  return begin() +
      static_cast<int64_t>(bytes() / block_bytes()) * kBlockPositions;
}

size_t BlockKvCache::bytes() const {
  return buffer_ == nullptr ? 0 : buffer_->pages.bytes();
}

size_t BlockKvCache::bytes_for(int64_t positions, int step) const {
  const int64_t rows = window_.most_held(positions, step);
  // Those of a window may begin within a block.
  const int64_t blocks = blocks_for(rows) + (rows < positions ? 1 : 0);
  return static_cast<size_t>(blocks) * block_bytes();
}

size_t BlockKvCache::Buffer::used_bytes(size_t block_bytes) const {
  return static_cast<size_t>(blocks_for(written) - first_block) * block_bytes;
}

void BlockKvCache::add_buffers(KvBuffers& buffers) const {
  if (buffer_ != nullptr) {
    buffers.push_back({buffer_.get(), buffer_->used_bytes(block_bytes())});
  }
}

std::string BlockKvCache::scheme() const {
  const std::string bits = std::to_string(shape_.bits);
  return shape_.is_quantized() ? bits + "/" + std::to_string(shape_.group_size)
                               : bits;
}

void BlockKvCache::release_unused() {
  if (buffer_ != nullptr) {
    buffer_->pages.release(buffer_->used_bytes(block_bytes()));
  }
}

void BlockKvCache::reserve(int64_t positions) {
  const int64_t end = window_.reserved_end(begin(), positions);
  if (end > capacity()) {
    move_to_buffer_up_to(end);
  }
}

// Takes the rows along that are still needed.
void BlockKvCache::move_to_buffer_up_to(int64_t end) {
  if (buffer_ != nullptr && buffer_.use_count() == 1 &&
      first_block_needed() == buffer_->first_block) {
    buffer_->pages.grow(
        static_cast<size_t>(blocks_for(end) - buffer_->first_block) *
        block_bytes());
    buffer_->written = offset_ + pending_;
    return;
  }
  auto moved = std::make_shared<Buffer>();
  moved->first_block = first_block_needed();
  const auto size = [&](int64_t positions) {
    return static_cast<size_t>(blocks_for(positions) - moved->first_block) *
        block_bytes();
  };
  moved->pages = PageBuffer::filled_in_step(size(end));
  moved->written = offset_ + pending_;
  if (moved->written > 0) {
    const auto dropped =
        static_cast<size_t>(moved->first_block - buffer_->first_block) *
        block_bytes();
    std::memcpy(
        moved->pages.data(),
        buffer_->pages.data() + dropped,
        size(moved->written));
  }
  buffer_ = std::move(moved);
}

std::byte* BlockKvCache::extend(int64_t positions) {
  const int64_t first = offset_ + pending_;
  const int64_t end = first + positions;
  if (end > capacity()) {
    const int64_t begin = first_block_needed() * kBlockPositions;
    move_to_buffer_up_to(window_.grown_end(begin, end));
  } else if (buffer_.use_count() > 1 && buffer_->written != first) {
    move_to_buffer_up_to(capacity());
  }
  buffer_->written = end;
  pending_ = end - offset_;
  return buffer_->pages.data();
}

void BlockKvCache::commit() {
  offset_ += pending_;
  pending_ = 0;
}

bool BlockKvCache::roll_back() {
  if (pending_ > 0) {
    buffer_->written = offset_; // it was ours to write, so nobody sees more
    pending_ = 0;
  }
  return true;
}

void BlockKvCache::trim(int64_t position) {
  assert(can_trim_to(position));
  offset_ = position;
}

std::shared_ptr<const KvLayerSnapshot> BlockKvCache::snapshot(
    int64_t length) const {
  assert(can_trim_to(length));
  return std::make_shared<Snapshot>(BlockKvCache(*this, length));
}

} // namespace ingle
