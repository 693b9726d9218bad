// The element types of GGUF that the importer reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingle {

// The numbers are those of the file format.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

// Tensors are stored as rows of blocks; plain types have blocks of one.
struct GgmlTypeInfo {
  GgmlType type;
  std::string_view name;
  size_t block_elements;
  size_t block_bytes;
};

// The largest block_elements.
inline constexpr size_t kMaxBlockElements = 256;

const GgmlTypeInfo& ggml_type_info(GgmlType type);

// Nothing for a type that the importer does not read.
std::optional<GgmlType> parse_ggml_type(uint32_t number);

// For messages: "IQ4_XS" or "type 99", and "F32, F16, Q4_0, ...".
std::string ggml_type_name(uint32_t number);
std::string supported_ggml_types();

} // namespace ingle
