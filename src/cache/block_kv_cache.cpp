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
  Snapshot(
      int kv_heads,
      KvBlockShape shape,
      std::shared_ptr<Buffer> buffer,
      int64_t length)
      : kv_heads_(kv_heads),
        shape_(shape),
        buffer_(std::move(buffer)),
        length_(length) {}
  int64_t length() const override {
    return length_;
  }
  std::unique_ptr<KvCache> restore() const override {
    return std::unique_ptr<KvCache>(
        new BlockKvCache(kv_heads_, shape_, buffer_, length_));
  }

 private:
  int kv_heads_;
  KvBlockShape shape_;
  std::shared_ptr<Buffer> buffer_;
  int64_t length_;
};

int64_t BlockKvCache::capacity() const {
  return static_cast<int64_t>(bytes() / block_bytes()) * kBlockPositions;
}

size_t BlockKvCache::bytes() const {
  return buffer_ == nullptr ? 0 : buffer_->pages.bytes();
}

void BlockKvCache::reserve(int64_t positions) {
  if (positions > capacity()) {
    move_to_buffer_of(positions);
  }
}

// Takes the rows along.
void BlockKvCache::move_to_buffer_of(int64_t positions) {
  auto grown = std::make_shared<Buffer>();
  grown->pages =
      PageBuffer(static_cast<size_t>(blocks_for(positions)) * block_bytes());
  grown->written = offset_ + pending_;
  if (grown->written > 0) {
    std::memcpy(
        grown->pages.data(),
        buffer_->pages.data(),
        static_cast<size_t>(blocks_for(grown->written)) * block_bytes());
  }
  buffer_ = std::move(grown);
}

std::byte* BlockKvCache::extend(int64_t positions) {
  const int64_t begin = offset_ + pending_;
  const int64_t end = begin + positions;
  if (end > capacity()) {
    move_to_buffer_of(std::max(end, capacity() + capacity() / 2));
  } else if (buffer_.use_count() > 1 && buffer_->written != begin) {
    move_to_buffer_of(capacity());
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

bool BlockKvCache::can_trim_to(int64_t position) const {
  return position >= 0 && position <= offset_ && pending_ == 0;
}

void BlockKvCache::trim(int64_t position) {
  assert(can_trim_to(position));
  offset_ = position;
}

std::shared_ptr<const KvLayerSnapshot> BlockKvCache::snapshot(
    int64_t length) const {
  assert(length <= offset_ && pending_ == 0);
  return std::make_shared<Snapshot>(kv_heads_, shape_, buffer_, length);
}

} // namespace ingle
