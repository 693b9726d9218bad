#include "model/output_buffers.h"

#include <algorithm>

namespace ingle {
namespace {

namespace allocator = mlx::core::allocator;

// More than a step has at a time: the layers' input and output, and logits.
constexpr size_t kKept = 4;

size_t size_of(const allocator::Buffer& buffer) {
  return allocator::allocator().size(buffer);
}

bool is_smaller(const allocator::Buffer& a, const allocator::Buffer& b) {
  return size_of(a) < size_of(b);
}

} // namespace

OutputBuffers::~OutputBuffers() {
  MutexLock lock(mutex_);
  for (const allocator::Buffer& buffer : free_) {
    allocator::allocator().free(buffer);
  }
}

allocator::Data OutputBuffers::take(size_t bytes) {
  MutexLock lock(mutex_);
  const auto fits = std::find_if(
      free_.begin(), free_.end(), [&](const allocator::Buffer& buffer) {
        return size_of(buffer) >= bytes;
      });
  allocator::Buffer buffer(nullptr);
  if (fits == free_.end()) {
    buffer = allocator::allocator().malloc(bytes);
  } else {
    buffer = *fits;
    free_.erase(fits);
  }
  return {buffer, [self = shared_from_this()](allocator::Buffer done) {
            self->give_back(done);
          }};
}

// Sorted by size, the smallest first to be taken and to go.
void OutputBuffers::give_back(allocator::Buffer buffer) {
  MutexLock lock(mutex_);
  free_.insert(
      std::upper_bound(free_.begin(), free_.end(), buffer, is_smaller), buffer);
  if (free_.size() > kKept) {
    allocator::allocator().free(free_.front());
    free_.erase(free_.begin());
  }
}

} // namespace ingle
