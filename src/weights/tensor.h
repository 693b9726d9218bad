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

// Bytes of a tensor; nothing where a dimension is negative or the product does
// not fit. A tensor with a dimension of 0 has 0 bytes.
std::optional<uint64_t> tensor_bytes(
    TensorType type,
    const std::vector<int64_t>& shape);

// A name from a file, for a message: in quotes, control and non-ASCII bytes
// escaped, cut when very long, so that the message stays one line.
std::string quote_name(std::string_view name);

// A tensor in a mapped file. `bytes` is little-endian and row-major and lives
// as long as the mapping it comes from. It may start at any address: a file
// need not align its tensors.
struct TensorView {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  ByteView bytes;
  std::string file; // the path of the file that it stands in
};

} // namespace ingle
