#include "cache/plain_kv_cache.h"

#include <algorithm>
#include <cassert>

#include <mlx/ops.h>
#include <mlx/transforms.h>

namespace ingle {
namespace {

// The smallest buffer worth having.
constexpr int64_t kMinCapacity = 64;

mx::array slice_rows(const mx::array& rows, int64_t begin, int64_t end) {
  mx::Shape stop = rows.shape();
  stop[2] = static_cast<int>(end);
  return mx::slice(rows, {0, 0, static_cast<int>(begin), 0}, stop);
}

// Takes its target by value: an array that nobody else holds is written in
// place.
mx::array
write_rows(mx::array target, const mx::array& rows, int64_t position) {
  mx::Shape stop = target.shape();
  stop[2] = static_cast<int>(position + rows.shape(2));
  return mx::slice_update(
      target, rows, {0, 0, static_cast<int>(position), 0}, stop);
}

} // namespace

class PlainKvCache::Snapshot final : public KvLayerSnapshot {
 public:
  Snapshot(KvLayerShape shape, std::optional<Buffer> buffer, int64_t length)
      : shape_(shape), buffer_(std::move(buffer)), length_(length) {}
  int64_t length() const override {
    return length_;
  }
  std::unique_ptr<KvCache> restore() const override {
    return std::unique_ptr<KvCache>(new PlainKvCache(shape_, buffer_, length_));
  }

 private:
  KvLayerShape shape_;
  std::optional<Buffer> buffer_;
  int64_t length_;
};

int64_t PlainKvCache::capacity() const {
  return buffer_ ? buffer_->keys.shape(2) : 0;
}

size_t PlainKvCache::bytes() const {
  return buffer_ ? buffer_->keys.nbytes() + buffer_->values.nbytes() : 0;
}

void PlainKvCache::reserve(int64_t positions) {
  if (positions > capacity()) {
    grow(positions);
    mx::eval(buffer_->keys, buffer_->values);
  }
}

void PlainKvCache::grow(int64_t capacity) {
  const mx::Shape shape = {
      1, shape_.kv_heads, static_cast<int>(capacity), shape_.head_dim};
  Buffer grown{mx::zeros(shape, shape_.dtype), mx::zeros(shape, shape_.dtype)};
  const int64_t rows = offset_ + pending_;
  if (rows > 0) {
    grown.keys = write_rows(
        std::move(grown.keys), slice_rows(buffer_->keys, 0, rows), 0);
    grown.values = write_rows(
        std::move(grown.values), slice_rows(buffer_->values, 0, rows), 0);
  }
  buffer_ = std::move(grown);
}

KvView PlainKvCache::append(const mx::array& keys, const mx::array& values) {
  const int64_t begin = offset_ + pending_;
  const int64_t end = begin + keys.shape(2);
  if (end > capacity()) {
    grow(std::max({end, capacity() + capacity() / 2, kMinCapacity}));
  }
  buffer_->keys = write_rows(std::move(buffer_->keys), keys, begin);
  buffer_->values = write_rows(std::move(buffer_->values), values, begin);
  pending_ = end - offset_;
  return {
      slice_rows(buffer_->keys, 0, end), slice_rows(buffer_->values, 0, end)};
}

std::vector<mx::array> PlainKvCache::pending_arrays() const {
  if (pending_ == 0) {
    return {};
  }
  return {buffer_->keys, buffer_->values};
}

void PlainKvCache::commit() {
  offset_ += pending_;
  pending_ = 0;
}

bool PlainKvCache::can_trim_to(int64_t position) const {
  return position >= 0 && position <= offset_ && pending_ == 0;
}

void PlainKvCache::trim(int64_t position) {
  assert(can_trim_to(position));
  offset_ = position;
}

std::shared_ptr<const KvLayerSnapshot> PlainKvCache::snapshot(
    int64_t length) const {
  assert(length <= offset_ && pending_ == 0);
  return std::make_shared<Snapshot>(shape_, buffer_, length);
}

} // namespace ingle
