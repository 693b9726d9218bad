// Memory for what the kernels' primitives give, used again from step to step:
// fresh pages would have to be zeroed by the system each time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <mlx/allocator.h>

namespace ingle {

// Threads: the engine thread, on which the arrays die as well.
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

  std::vector<mlx::core::allocator::Buffer> free_;
};

} // namespace ingle
