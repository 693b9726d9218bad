// The cache of a full-attention layer in MLX arrays.
//
// An mx::array is a value: an append is in place only while nobody else holds
// the array. A held snapshot therefore costs one copy of the buffer at the
// next append, which is what the one-writer rule asks for.
//
// A step that fails leaves arrays that must not be read again: the cache is
// then good for nothing but destruction. See KvState::is_intact().
#pragma once

#include <optional>

#include "cache/array_kv_cache.h"

namespace ingle {

class PlainKvCache final : public ArrayKvCache {
 public:
  explicit PlainKvCache(KvLayerShape shape) : shape_(shape) {}

  int64_t offset() const override {
    return offset_;
  }
  int64_t capacity() const override;
  size_t bytes() const override;
  void reserve(int64_t positions) override;
  KvView append(const mx::array& keys, const mx::array& values) override;
  int64_t pending() const override {
    return pending_;
  }
  std::vector<mx::array> pending_arrays() const override;
  void commit() override;
  bool can_trim_to(int64_t position) const override;
  void trim(int64_t position) override;
  std::shared_ptr<const KvLayerSnapshot> snapshot(
      int64_t length) const override;

 private:
  // keys, values: [1, kv_heads, capacity, head_dim].
  struct Buffer {
    mx::array keys;
    mx::array values;
  };
  class Snapshot;

  PlainKvCache(KvLayerShape shape, std::optional<Buffer> buffer, int64_t offset)
      : shape_(shape), buffer_(std::move(buffer)), offset_(offset) {}

  void grow(int64_t capacity);

  KvLayerShape shape_;
  std::optional<Buffer> buffer_; // none: capacity 0
  int64_t offset_ = 0;
  int64_t pending_ = 0;
};

} // namespace ingle
