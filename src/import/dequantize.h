// Straight dequantisation of GGUF blocks: the truth that the mapping to MLX's
// form is held against.
#pragma once

#include <span>

#include "base/bytes.h"
#include "import/ggml_types.h"

namespace ingle {

// Requires: `blocks` are whole blocks of `type`, `out` has one place for each
// of their elements.
void dequantize(GgmlType type, ByteView blocks, std::span<float> out);

// The scale (0 to 63) and the minimum of sub-block `j` (0 to 7) out of the 12
// bytes in which Q4_K and Q5_K pack them at 6 bits.
struct ScaleAndMin {
  int scale;
  int min;
};
ScaleAndMin unpack_scale_and_min(const std::byte* packed, size_t j);

} // namespace ingle
