#include "weights/tensor.h"

#include <array>

namespace ingle {
namespace {

struct TypeInfo {
  TensorType type;
  std::string_view name;
  size_t size; // bytes of one element
};

// In the order of the enum.
constexpr std::array<TypeInfo, 13> kTypes = {{
    {TensorType::kBool, "BOOL", 1},
    {TensorType::kU8, "U8", 1},
    {TensorType::kI8, "I8", 1},
    {TensorType::kU16, "U16", 2},
    {TensorType::kI16, "I16", 2},
    {TensorType::kF16, "F16", 2},
    {TensorType::kBF16, "BF16", 2},
    {TensorType::kU32, "U32", 4},
    {TensorType::kI32, "I32", 4},
    {TensorType::kF32, "F32", 4},
    {TensorType::kU64, "U64", 8},
    {TensorType::kI64, "I64", 8},
    {TensorType::kF64, "F64", 8},
}};

constexpr bool is_indexed_by_type() {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<size_t>(kTypes[i].type) != i) {
      return false;
    }
  }
  return true;
}
static_assert(is_indexed_by_type());

} // namespace

size_t element_size(TensorType type) {
  return kTypes[static_cast<size_t>(type)].size;
}

std::string_view to_string(TensorType type) {
  return kTypes[static_cast<size_t>(type)].name;
}

std::optional<TensorType> parse_tensor_type(std::string_view name) {
  for (const TypeInfo& info : kTypes) {
    if (info.name == name) {
      return info.type;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> tensor_bytes(
    TensorType type,
    const std::vector<int64_t>& shape) {
  uint64_t bytes = element_size(type);
  bool empty = false;
  bool overflow = false;
  for (const int64_t dim : shape) {
    if (dim < 0) {
      return std::nullopt;
    }
    empty = empty || dim == 0;
    overflow = overflow ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes);
  }
  if (empty) {
    return 0;
  }
  return overflow ? std::nullopt : std::optional(bytes);
}

std::string quote_name(std::string_view name) {
  constexpr size_t kLongest = 120; // bytes; enough for any honest name
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "'";
  for (const char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '\'' || c == '\\') {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    } else {
      text += c;
    }
  }
  text += name.size() > kLongest ? "...'" : "'";
  return text;
}

} // namespace ingle
