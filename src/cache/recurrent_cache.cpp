#include "cache/recurrent_cache.h"

#include <cassert>

namespace ingle {

class RecurrentCache::Snapshot final : public KvLayerSnapshot {
 public:
  Snapshot(
      size_t state_bytes,
      std::shared_ptr<PageBuffer> state,
      int64_t length)
      : state_bytes_(state_bytes), state_(std::move(state)), length_(length) {}
  int64_t length() const override {
    return length_;
  }
  std::unique_ptr<KvCache> restore() const override {
    return std::unique_ptr<KvCache>(
        new RecurrentCache(state_bytes_, state_, length_));
  }
  void add_buffers(KvBuffers& buffers) const override {
    if (state_ != nullptr) {
      buffers.push_back({state_.get(), state_->bytes()});
    }
  }

 private:
  size_t state_bytes_;
  std::shared_ptr<PageBuffer> state_;
  int64_t length_;
};

size_t RecurrentCache::bytes() const {
  size_t total = 0;
  for (const auto& buffer : {committed_, next_}) {
    total += buffer == nullptr ? 0 : buffer->bytes();
  }
  return total;
}

void RecurrentCache::add_buffers(KvBuffers& buffers) const {
  for (const auto& buffer : {committed_, next_}) {
    if (buffer != nullptr) {
      buffers.push_back({buffer.get(), buffer->bytes()});
    }
  }
}

// Both buffers, the second one nobody else's. Fresh pages are zero.
void RecurrentCache::allocate() {
  if (committed_ == nullptr) {
    committed_ = std::make_shared<PageBuffer>(state_bytes_);
  }
  if (next_ == nullptr || next_.use_count() > 1) {
    next_ = std::make_shared<PageBuffer>(state_bytes_);
  }
}

void RecurrentCache::reserve(int64_t) {
  allocate();
}

RecurrentCache::Step RecurrentCache::extend(int64_t positions) {
  const bool goes_on = pending_ > 0;
  if (!goes_on) {
    allocate();
  }
  pending_ += positions;
  return {goes_on ? next_->data() : committed_->data(), next_->data()};
}

void RecurrentCache::commit() {
  if (pending_ > 0) {
    std::swap(committed_, next_);
  }
  offset_ += pending_;
  pending_ = 0;
}

bool RecurrentCache::roll_back() {
  pending_ = 0; // what was written is nobody's to read
  return true;
}

void RecurrentCache::trim([[maybe_unused]] int64_t position) {
  assert(can_trim_to(position));
}

std::shared_ptr<const KvLayerSnapshot> RecurrentCache::snapshot(
    int64_t length) const {
  assert(can_trim_to(length));
  return std::make_shared<Snapshot>(state_bytes_, committed_, length);
}

} // namespace ingle
