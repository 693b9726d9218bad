// GGUF blocks -> MLX's affine quantised form, group size 32.
//
// docs/formats/gguf-import.md has the table and a worked example.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "import/ggml_types.h"
#include "weights/tensor.h"

namespace ingle {

inline constexpr int64_t kAffineGroup = 32; // elements with one scale and bias

struct AffineForm {
  int bits;
  TensorType scale_type; // of scales and biases
  // True iff scale * code + bias in f32 is what dequantize() gives, for every
  // block. Otherwise the blocks are quantised again, to the nearest of 256
  // steps between the least and the greatest of each group.
  bool exact;
};

// Nothing for the plain types: they stay as they are.
std::optional<AffineForm> affine_form(GgmlType type);

// Codes at `bits` each, element i at bit i * bits of a little-endian stream;
// one scale and bias per group. Byte-for-byte what safetensors holds.
struct AffineBytes {
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<std::byte> biases;
};

// Replaces what is in `out`. False where a scale or bias is not finite in its
// type: such a tensor is damaged.
// Requires: `blocks` are whole blocks of `type`, which has an affine form.
[[nodiscard]] bool to_affine(GgmlType type, ByteView blocks, AffineBytes& out);

} // namespace ingle
