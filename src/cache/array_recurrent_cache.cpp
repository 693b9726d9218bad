#include "cache/array_recurrent_cache.h"

#include <cassert>

#include <mlx/ops.h>

namespace ingle {
namespace {

void add_arrays(
    const std::optional<RecurrentArrays>& state,
    KvBuffers& buffers) {
  if (state) {
    for (const mx::array& part : {state->conv, state->heads}) {
      buffers.push_back({part.buffer().ptr(), part.nbytes()});
    }
  }
}

} // namespace

class ArrayRecurrentCache::Snapshot final : public KvLayerSnapshot {
 public:
  Snapshot(
      RecurrentShape shape,
      std::optional<RecurrentArrays> state,
      int64_t length)
      : shape_(shape), state_(std::move(state)), length_(length) {}
  int64_t length() const override {
    return length_;
  }
  std::unique_ptr<KvCache> restore() const override {
    return std::unique_ptr<KvCache>(
        new ArrayRecurrentCache(shape_, state_, length_));
  }
  void add_buffers(KvBuffers& buffers) const override {
    add_arrays(state_, buffers);
  }

 private:
  RecurrentShape shape_;
  std::optional<RecurrentArrays> state_;
  int64_t length_;
};

size_t ArrayRecurrentCache::bytes() const {
  size_t total = 0;
  for (const auto& state : {committed_, next_}) {
    total += state ? state->conv.nbytes() + state->heads.nbytes() : 0;
  }
  return total;
}

size_t ArrayRecurrentCache::bytes_for(int64_t, int) const {
  const auto conv = static_cast<size_t>(shape_.conv_rows) *
      static_cast<size_t>(shape_.channels) * mx::size_of(shape_.dtype);
  const auto heads = static_cast<size_t>(shape_.heads) *
      static_cast<size_t>(shape_.value_dim) *
      static_cast<size_t>(shape_.key_dim) * sizeof(float);
  return 2 * (conv + heads);
}

void ArrayRecurrentCache::add_buffers(KvBuffers& buffers) const {
  add_arrays(committed_, buffers);
}

RecurrentArrays ArrayRecurrentCache::state() const {
  if (next_) {
    return *next_;
  }
  if (committed_) {
    return *committed_;
  }
  return {
      mx::zeros({shape_.conv_rows, shape_.channels}, shape_.dtype),
      mx::zeros({shape_.heads, shape_.value_dim, shape_.key_dim}, mx::float32)};
}

void ArrayRecurrentCache::advance(RecurrentArrays state, int64_t positions) {
  next_ = std::move(state);
  pending_ += positions;
}

std::vector<mx::array> ArrayRecurrentCache::pending_arrays() const {
  if (!next_) {
    return {};
  }
  return {next_->conv, next_->heads};
}

void ArrayRecurrentCache::commit() {
  if (next_) {
    committed_ = std::move(next_);
    next_.reset();
  }
  offset_ += pending_;
  pending_ = 0;
}

// The committed arrays were evaluated before the step, which only read them.
bool ArrayRecurrentCache::roll_back() {
  next_.reset();
  pending_ = 0;
  return true;
}

void ArrayRecurrentCache::trim([[maybe_unused]] int64_t position) {
  assert(can_trim_to(position));
}

std::shared_ptr<const KvLayerSnapshot> ArrayRecurrentCache::snapshot(
    int64_t length) const {
  assert(can_trim_to(length));
  return std::make_shared<Snapshot>(shape_, committed_, length);
}

} // namespace ingle
