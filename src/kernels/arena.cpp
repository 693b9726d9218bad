#include "kernels/arena.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace ingle {
namespace {

constexpr size_t kChunk = size_t{32} << 20;
constexpr size_t kLine = 64;

} // namespace

PageBuffer::PageBuffer(size_t bytes) {
  if (bytes == 0) {
    return;
  }
  void* pages = mmap(
      nullptr,
      bytes,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
      -1,
      0);
  if (pages == MAP_FAILED) {
    throw std::bad_alloc();
  }
#if defined(MADV_HUGEPAGE)
  madvise(pages, bytes, MADV_HUGEPAGE); // a wish: without it, small pages
#endif
  data_ = static_cast<std::byte*>(pages);
  bytes_ = bytes;
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) {
    munmap(data_, bytes_);
  }
}

void PageBuffer::grow(size_t bytes) {
  if (bytes <= bytes_) {
    return;
  }
#if defined(MREMAP_MAYMOVE)
  if (data_ != nullptr) {
    void* pages = mremap(data_, bytes_, bytes, MREMAP_MAYMOVE);
    if (pages == MAP_FAILED) {
      throw std::bad_alloc();
    }
    data_ = static_cast<std::byte*>(pages);
    bytes_ = bytes;
    return;
  }
#endif
  PageBuffer grown(bytes);
  if (bytes_ > 0) {
    std::memcpy(grown.data_, data_, bytes_);
  }
  *this = std::move(grown);
}

void PageBuffer::release(size_t begin) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t first = (begin + page - 1) / page * page;
  if (first < bytes_) {
    madvise(data_ + first, bytes_ - first, MADV_DONTNEED); // or they stay
  }
}

void PageBuffer::reserve(size_t bytes) {
  if (bytes > bytes_) {
    *this = PageBuffer(); // both at once would be twice the memory
    *this = PageBuffer(bytes + bytes / 2);
  }
}

std::byte* Arena::allocate(size_t bytes) {
  const size_t rounded = (bytes + kLine - 1) / kLine * kLine;
  if (chunks_.empty() || chunks_.back().bytes() - used_ < rounded) {
    chunks_.emplace_back(std::max(rounded, kChunk));
    used_ = 0;
  }
  std::byte* piece = chunks_.back().data() + used_;
  used_ += rounded;
  used_bytes_ += rounded;
  return piece;
}

} // namespace ingle
