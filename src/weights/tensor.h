// What a tensor in a file looks like; bytes, no arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace ingle {

// The element types of safetensors that MLX can hold.
enum class TensorType {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};

// Bytes of one element.
size_t element_size(TensorType type);
// "F16" and the like, as safetensors spells it; and back.
std::string_view to_string(TensorType type);
std::optional<TensorType> parse_tensor_type(std::string_view name);

// A tensor in a mapped file. `bytes` is little-endian and row-major and lives
// as long as the mapping it comes from.
struct TensorView {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  ByteView bytes;
};

} // namespace ingle
