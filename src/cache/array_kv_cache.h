// Keys and values in MLX arrays.
//
// An mx::array is a value: an append is in place only while nobody else holds
// the array. A held snapshot therefore costs one copy of the buffer at the
// next append, which is what the one-writer rule asks for.
//
// A step that fails leaves arrays that must not be read again: the cache is
// then good for nothing but destruction. See KvState::is_intact().
#pragma once

#include <algorithm>
#include <optional>

#include <mlx/dtype.h>

#include "cache/kv_cache.h"
#include "cache/kv_window.h"

namespace ingle {

// What one layer's cache has to hold.
struct KvLayerShape {
  int kv_heads = 0;
  int head_dim = 0; // a multiple of the quantisation's groups
  mx::Dtype dtype = mx::float32; // of rows, or of their scales and biases
  std::optional<KvQuantization> quantization{};
  int window = 0; // positions that one sees, its own included; 0: all
};

// Keys or values as the cache holds them, [1, kv_heads, positions, head_dim].
// Quantised ones are three arrays, as mx::quantize() makes them.
struct KvRows {
  mx::array rows; // packed in u32: [..., head_dim * bits / 32]
  std::optional<mx::array> scales{}; // [..., head_dim / group_size]
  std::optional<mx::array> biases{};
};

// All rows that a query of the pending step may attend to, its own included.
struct KvView {
  KvRows keys;
  KvRows values;
  int64_t begin = 0; // the first one's position
};

class ArrayKvCache final : public KvCache {
 public:
  explicit ArrayKvCache(KvLayerShape shape)
      : shape_(shape), window_(shape.window) {}

  int64_t offset() const override {
    return offset_;
  }
  int64_t begin() const override {
    return buffer_ ? buffer_->begin : 0;
  }
  int64_t capacity() const override;
  size_t bytes() const override;
  size_t bytes_for(int64_t positions, int step) const override;
  void add_buffers(KvBuffers& buffers) const override;
  std::string scheme() const override;
  void reserve(int64_t positions) override;
  void release_unused() override {} // an array is whole or not there
  int64_t pending() const override {
    return pending_;
  }
  std::vector<mx::array> pending_arrays() const override;
  void commit() override;
  // Nobody may read the arrays of a failed step, nor what they were made of.
  bool roll_back() override {
    return false;
  }
  bool forgets() const override {
    return window_.forgets();
  }
  int64_t first_resume_point() const override {
    return std::min(offset_, window_.first_resume_point(begin()));
  }
  void trim(int64_t position) override;
  std::shared_ptr<const KvLayerSnapshot> snapshot(
      int64_t length) const override;

  // Adds rows to the pending step. keys, values: [1, kv_heads, L, head_dim] in
  // the layer's dtype, L >= 1. Several appends in one step follow each other.
  // Throws what MLX throws; call it inside run_mlx().
  KvView append(const mx::array& keys, const mx::array& values);
  // What the last append() of the pending step gave: for layers that attend to
  // this one's rows. Requires: there was one.
  KvView view() const;

 private:
  // Those of keys, then as many of values: rows, or rows, scales and biases.
  struct Buffer {
    std::vector<mx::array> parts; // [1, kv_heads, positions, ...]
    int64_t begin = 0;
  };
  class Snapshot;

  // One that goes on at `offset` in another's buffer.
  ArrayKvCache(const ArrayKvCache& other, int64_t offset)
      : shape_(other.shape_),
        window_(other.window_),
        buffer_(other.buffer_),
        offset_(offset) {}

  std::vector<mx::array> parts_of(
      const mx::array& keys,
      const mx::array& values) const;
  void move_to_buffer_up_to(int64_t end);

  KvLayerShape shape_;
  KvWindow window_;
  std::optional<Buffer> buffer_; // none: capacity 0
  int64_t offset_ = 0;
  int64_t pending_ = 0;
};

} // namespace ingle
