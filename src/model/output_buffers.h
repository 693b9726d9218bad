// Memory for what the CPU kernels' ops give, used again from step to step:
// fresh pages would have to be zeroed by the system each time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <mlx/allocator.h>

#include "base/mutex.h"

namespace ingle {

// Threads: any: MLX drops what it has computed with on a thread of its own.
class OutputBuffers : public std::enable_shared_from_this<OutputBuffers> {
 public:
  OutputBuffers() = default;
  ~OutputBuffers();
  OutputBuffers(const OutputBuffers&) = delete;
  OutputBuffers& operator=(const OutputBuffers&) = delete;

  // At least `bytes`, which come back here when the array that has them dies,
  // be it after the model. Throws what MLX throws.
  mlx::core::allocator::Data take(size_t bytes);

 private:
  void give_back(mlx::core::allocator::Buffer buffer);

  Mutex mutex_;
  std::vector<mlx::core::allocator::Buffer> free_ INGLE_GUARDED_BY(mutex_);
};

} // namespace ingle
