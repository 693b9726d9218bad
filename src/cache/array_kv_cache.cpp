#include "cache/array_kv_cache.h"

#include <algorithm>
#include <cassert>
#include <sstream>

#include <mlx/ops.h>
#include <mlx/transforms.h>
#include <mlx/utils.h>

namespace ingle {
namespace {

// The least room worth having.
constexpr int64_t kMinRoom = 64; // positions

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

class ArrayKvCache::Snapshot final : public KvLayerSnapshot {
 public:
  explicit Snapshot(ArrayKvCache cache) : cache_(std::move(cache)) {}
  int64_t length() const override {
    return cache_.offset();
  }
  std::unique_ptr<KvCache> restore() const override {
    return std::unique_ptr<KvCache>(new ArrayKvCache(cache_, length()));
  }
  void add_buffers(KvBuffers& buffers) const override {
    cache_.add_buffers(buffers);
  }

 private:
  ArrayKvCache cache_;
};

int64_t ArrayKvCache::capacity() const {
  return buffer_ ? buffer_->begin + buffer_->parts.front().shape(2) : 0;
}

size_t ArrayKvCache::bytes() const {
  size_t total = 0;
  if (buffer_) {
    for (const mx::array& part : buffer_->parts) {
      total += part.nbytes();
    }
  }
  return total;
}

size_t ArrayKvCache::bytes_for(int64_t positions, int step) const {
  const auto dim = static_cast<size_t>(shape_.head_dim);
  const size_t number = mx::size_of(shape_.dtype);
  size_t row = dim * number;
  if (shape_.quantization) {
    const auto [bits, group_size] = *shape_.quantization;
    row = dim * static_cast<size_t>(bits) / 8 +
        2 * number * (dim / static_cast<size_t>(group_size));
  }
  return 2 * static_cast<size_t>(shape_.kv_heads) * row *
      static_cast<size_t>(window_.most_held(positions, step));
}

void ArrayKvCache::add_buffers(KvBuffers& buffers) const {
  if (buffer_) {
    for (const mx::array& part : buffer_->parts) {
      buffers.push_back({part.buffer().ptr(), part.nbytes()});
    }
  }
}

std::string ArrayKvCache::scheme() const {
  if (!shape_.quantization) {
    std::ostringstream name;
    name << shape_.dtype;
    return name.str();
  }
  return std::to_string(shape_.quantization->bits) + "/" +
      std::to_string(shape_.quantization->group_size);
}

void ArrayKvCache::reserve(int64_t positions) {
  const int64_t end = window_.reserved_end(begin(), positions);
  if (end > capacity()) {
    move_to_buffer_up_to(end);
    mx::eval(buffer_->parts);
  }
}

// As they are held.
std::vector<mx::array> ArrayKvCache::parts_of(
    const mx::array& keys,
    const mx::array& values) const {
  if (!shape_.quantization) {
    return {keys, values};
  }
  const auto [bits, group_size] = *shape_.quantization;
  std::vector<mx::array> parts = mx::quantize(keys, group_size, bits);
  for (mx::array& part : mx::quantize(values, group_size, bits)) {
    parts.push_back(std::move(part));
  }
  return parts;
}

// Takes the rows along that are still needed.
void ArrayKvCache::move_to_buffer_up_to(int64_t end) {
  Buffer moved;
  moved.begin = window_.first_needed(offset_);
  const int64_t rows_end = offset_ + pending_;
  const mx::array row =
      mx::zeros({1, shape_.kv_heads, 1, shape_.head_dim}, shape_.dtype);
  for (const mx::array& part : parts_of(row, row)) {
    mx::Shape shape = part.shape();
    shape[2] = static_cast<int>(end - moved.begin);
    moved.parts.push_back(mx::zeros(shape, part.dtype()));
  }
  if (rows_end > moved.begin) {
    for (size_t i = 0; i < moved.parts.size(); ++i) {
      moved.parts[i] = write_rows(
          std::move(moved.parts[i]),
          slice_rows(
              buffer_->parts[i],
              moved.begin - buffer_->begin,
              rows_end - buffer_->begin),
          0);
    }
  }
  buffer_ = std::move(moved);
}

KvView ArrayKvCache::append(const mx::array& keys, const mx::array& values) {
  const int64_t first = offset_ + pending_;
  const int64_t end = first + keys.shape(2);
  if (end > capacity()) {
    const int64_t begin = window_.first_needed(offset_);
    move_to_buffer_up_to(
        std::max(window_.grown_end(begin, end), begin + kMinRoom));
  }
  const std::vector<mx::array> added = parts_of(keys, values);
  for (size_t i = 0; i < added.size(); ++i) {
    mx::array& part = buffer_->parts[i];
    part = write_rows(std::move(part), added[i], first - buffer_->begin);
  }
  pending_ = end - offset_;
  return view();
}

KvView ArrayKvCache::view() const {
  std::vector<mx::array> rows;
  for (const mx::array& part : buffer_->parts) {
    rows.push_back(slice_rows(part, 0, offset_ + pending_ - buffer_->begin));
  }
  if (!shape_.quantization) {
    return {{rows[0]}, {rows[1]}, buffer_->begin};
  }
  return {
      {rows[0], rows[1], rows[2]}, {rows[3], rows[4], rows[5]}, buffer_->begin};
}

std::vector<mx::array> ArrayKvCache::pending_arrays() const {
  return pending_ == 0 ? std::vector<mx::array>() : buffer_->parts;
}

void ArrayKvCache::commit() {
  offset_ += pending_;
  pending_ = 0;
}

void ArrayKvCache::trim(int64_t position) {
  assert(can_trim_to(position));
  offset_ = position;
}

std::shared_ptr<const KvLayerSnapshot> ArrayKvCache::snapshot(
    int64_t length) const {
  assert(can_trim_to(length));
  return std::make_shared<Snapshot>(ArrayKvCache(*this, length));
}

} // namespace ingle
