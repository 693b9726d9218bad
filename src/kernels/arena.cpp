#include "kernels/arena.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace ingle {
namespace {

constexpr size_t kChunk = size_t{32} << 20;
constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20; // of x86, and of Arm's 4 KiB

size_t place_in_huge_page(const std::byte* address) {
  return reinterpret_cast<uintptr_t>(address) % kHugePage;
}

// Throws std::bad_alloc.
std::byte* map_pages(size_t bytes) {
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
  return static_cast<std::byte*>(pages);
}

// Pages that begin at `place` bytes of a huge page, a multiple of the small
// ones. What lies before them and is not theirs is given back, so the system
// has no huge page to give there. Throws std::bad_alloc.
std::byte* map_pages_at(size_t place, size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kHugePage) {
    throw std::bad_alloc();
  }
  const auto small = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t used = (bytes + small - 1) / small * small;
  std::byte* begin = map_pages(used + kHugePage);
  const size_t before =
      (place + kHugePage - place_in_huge_page(begin)) % kHugePage;
  if (before > 0) {
    munmap(begin, before);
  }
  munmap(begin + before + used, kHugePage - before);
  return begin + before;
}

} // namespace

PageBuffer::PageBuffer(size_t bytes) {
  if (bytes > 0) {
    data_ = map_pages(bytes);
    bytes_ = bytes;
  }
}

PageBuffer PageBuffer::filled_in_step(size_t bytes) {
  // Strides that have no factor in common with the number of places: they come
  // back to one only after all others.
  constexpr size_t kPlaces = 32;
  constexpr size_t kStride = 13;
  static std::atomic<size_t> count = 0;
  const size_t place = count++ * kStride % kPlaces;
  if (bytes == 0) {
    return {};
  }
  return {map_pages_at(place * (kHugePage / kPlaces), bytes), bytes};
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
#if defined(MREMAP_FIXED)
  if (data_ != nullptr) {
    std::byte* place = map_pages_at(place_in_huge_page(data_), bytes);
    void* pages =
        mremap(data_, bytes_, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (pages == MAP_FAILED) {
      // Whether `place` is still ours isn't known: unmapping it could hit
      // another thread's pages. Nobody writes there, so it costs nothing.
      throw std::bad_alloc();
    }
    data_ = place;
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
