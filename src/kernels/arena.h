// Memory for weights, tiles and KV blocks: aligned to cache lines, in huge
// pages where the system gives them, never moved.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace ingle {

// Zero-filled pages of its own. Untouched pages cost no memory.
//
// Threads: owned by one; its bytes may be shared as the owner sees fit.
class PageBuffer {
 public:
  PageBuffer() = default; // of no bytes
  // Throws std::bad_alloc.
  explicit PageBuffer(size_t bytes);
  // One of many that fill in step, as those of a model's layers do: each
  // begins at another place of a huge page than the last ones, in small pages
  // up to the next. So no step has the system clear a huge page for every one
  // of them, and a few rows of each take little memory.
  // Throws std::bad_alloc.
  static PageBuffer filled_in_step(size_t bytes);
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const {
    return data_;
  }
  size_t bytes() const {
    return bytes_;
  }

  // Makes it so large at least; it keeps what it holds, and may be elsewhere
  // then, at the same place of a huge page. Nothing is copied where the system
  // can move pages.
  // Throws std::bad_alloc, and has changed nothing.
  void grow(size_t bytes);

  // Gives the pages from `begin` on back to the system, as far as it can: they
  // are zero again.
  void release(size_t begin);

  // Makes room for `bytes`; what it held is lost if it has to grow.
  // Throws std::bad_alloc.
  void reserve(size_t bytes);

 private:
  // Takes over pages from map_pages().
  PageBuffer(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Hands out pieces that live as long as the arena: for the weights of a model,
// which are many, small, and freed together.
//
// Threads: one.
class Arena {
 public:
  // `bytes` of zeros at a multiple of 64. Throws std::bad_alloc.
  std::byte* allocate(size_t bytes);
  size_t used_bytes() const {
    return used_bytes_;
  }

 private:
  std::vector<PageBuffer> chunks_;
  size_t used_ = 0; // of the last chunk
  size_t used_bytes_ = 0; // of all
};

} // namespace ingle
