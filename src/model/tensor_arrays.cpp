#include "model/tensor_arrays.h"

#include <cstring>

#include <mlx/allocator.h>

namespace ingle {

mx::Dtype to_mlx(TensorType type) {
  switch (type) {
    case TensorType::kBool:
      return mx::bool_;
    case TensorType::kU8:
      return mx::uint8;
    case TensorType::kI8:
      return mx::int8;
    case TensorType::kU16:
      return mx::uint16;
    case TensorType::kI16:
      return mx::int16;
    case TensorType::kF16:
      return mx::float16;
    case TensorType::kBF16:
      return mx::bfloat16;
    case TensorType::kU32:
      return mx::uint32;
    case TensorType::kI32:
      return mx::int32;
    case TensorType::kF32:
      return mx::float32;
    case TensorType::kU64:
      return mx::uint64;
    case TensorType::kI64:
      return mx::int64;
    case TensorType::kF64:
      return mx::float64;
  }
  return mx::float32;
}

FloatType to_float_type(TensorType type) {
  return type == TensorType::kF16 ? FloatType::kF16
      : type == TensorType::kBF16 ? FloatType::kBF16
      : type == TensorType::kU8   ? FloatType::kE8M0
                                  : FloatType::kF32;
}

mx::array copy_to_array(
    std::span<const TensorView* const> tensors,
    const mx::Shape& shape) {
  size_t bytes = 0;
  for (const TensorView* tensor : tensors) {
    bytes += tensor->bytes.size();
  }
  mx::allocator::Data data = mx::allocator::malloc(bytes);
  auto* to = static_cast<std::byte*>(data.buffer().raw_ptr());
  for (const TensorView* tensor : tensors) {
    std::memcpy(to, tensor->bytes.data(), tensor->bytes.size());
    to += tensor->bytes.size();
  }
  return mx::array(std::move(data), shape, to_mlx(tensors.front()->type));
}

} // namespace ingle
