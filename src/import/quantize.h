// Plain values -> MLX's affine quantised form, as mx::quantize() has it on a
// CPU, to the bit.
//
// A group's codes are steps from the end of its range that is farther from 0
// towards the other one. Steps are nudged so that 0 is one of them.
#pragma once

#include "base/bytes.h"
#include "import/affine.h"
#include "weights/tensor.h"

namespace ingle {

struct AffineSpec {
  int bits = 4; // 2, 3, 4, 5, 6 or 8
  int group_size = 64; // 32, 64 or 128

  bool operator==(const AffineSpec&) const = default;
};

// Little-endian values of a floating-point type in another, to the nearest,
// ties to even. Replaces what is in `out`. Requires: whole values; both types
// are kF16, kBF16 or kF32.
void convert_floats(
    TensorType from,
    ByteView values,
    TensorType to,
    std::vector<std::byte>& out);

// Values of `type`, which scales and biases have, too. Appends to `out`. False
// where a value is not finite.
// Requires: whole groups; `type` as above.
[[nodiscard]] bool quantize(
    TensorType type,
    ByteView values,
    const AffineSpec& spec,
    AffineBytes& out);

} // namespace ingle
