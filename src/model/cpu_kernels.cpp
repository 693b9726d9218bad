#include "model/cpu_kernels.h"

#include <mlx/allocator.h>

namespace ingle {

namespace mx = mlx::core;

mx::array CpuKernels::output(int rows, int columns) {
  constexpr size_t kKept = 8; // more shapes than a prompt's last step has
  const auto is_free = [](const mx::array& array) {
    return array.is_donatable();
  };
  for (const mx::array& array : given_) {
    if (array.shape(0) == rows && array.shape(1) == columns && is_free(array)) {
      return array;
    }
  }
  if (given_.size() >= kKept) { // of other shapes
    std::erase_if(given_, is_free);
  }
  const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(columns);
  given_.emplace_back(
      mx::allocator::malloc(count * sizeof(float)),
      mx::Shape{rows, columns},
      mx::float32);
  return given_.back();
}

} // namespace ingle
