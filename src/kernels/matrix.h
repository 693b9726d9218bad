// Weights in the order in which the kernels read them.
//
// A matrix [rows, columns] is cut into panels of 16 rows, the lanes of a
// register; the last panel is filled up with rows of zeros. A panel is one
// sequential stream, the same for one token and for many. Of a quantised
// matrix, for each group of `group_size` columns:
//
//   for each 32 columns of the group: for each plane of `p` bits (below):
//     p registers of 64 bytes; dword `lane` of a register holds 4 columns of
//     that row. Quad q (columns 4q..4q+3) stands in register q % p, shifted
//     left by p * (q / p) within its bytes;
//   16 scales, then 16 biases, in the type that the file has them in; of MXFP4
//   16 scales alone.
//
// Planes: 8 bits are one plane of 8, 4 of 4, 2 of 2; 5 = 4 + 1, 6 = 4 + 2 and
// 3 = 2 + 1, the lower bits first. So a packed matrix is as large as the
// file's. Of a dense matrix: for each column the 16 values of the lanes.
//
// Value = scale * q + bias, as MLX's affine quantisation has it. Of MXFP4
// (OCP Microscaling Formats, 2023), where the type is kE8M0: scale *
// kMxfp4Values[q].
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/arena.h"

namespace ingle {

inline constexpr int kPanelRows = 16;
inline constexpr int kChunkColumns = 32;

enum class FloatType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kE8M0 // 2^(byte - 127), 0 where the byte is: scales of MXFP4
};

// Bytes of one value.
constexpr size_t float_size(FloatType type) {
  return type == FloatType::kF32 ? 4 : type == FloatType::kE8M0 ? 1 : 2;
}

inline constexpr float kMxfp4Values[] =
    {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// A packed matrix, or of no rows. Does not own `data`.
struct PackedMatrix {
  const std::byte* data = nullptr; // at a multiple of 64
  int rows = 0;
  int columns = 0;
  int bits = 0; // 2, 3, 4, 5, 6 or 8; 0: dense
  int group_size = 0; // 32, 64 or 128; only with bits
  FloatType type = FloatType::kF32; // of the values, or of scales and biases

  bool is_dense() const {
    return bits == 0;
  }
  bool is_mxfp4() const {
    return type == FloatType::kE8M0;
  }
  // True iff both can be multiplied side by side.
  bool has_format_of(const PackedMatrix& other) const {
    return bits == other.bits && group_size == other.group_size &&
        type == other.type;
  }
  int panels() const {
    return (rows + kPanelRows - 1) / kPanelRows;
  }
  size_t panel_bytes() const;
  const std::byte* panel(int i) const {
    return data + static_cast<size_t>(i) * panel_bytes();
  }
};

// What the safetensors of a quantised module hold, little-endian, row-major,
// at any address.
struct QuantizedSource {
  const std::byte* weight = nullptr; // u32 [rows, columns * bits / 32]
  const std::byte* scales = nullptr; // [rows, columns / group_size]
  const std::byte* biases = nullptr; // like scales; of MXFP4 none
};

// True iff the kernels have these: see `bits` and `group_size` above, and
// columns a multiple of group_size.
bool can_pack(int columns, int bits, int group_size);

// Requires: can_pack(). `type` is that of scales and biases; kE8M0 with 4 bits
// in groups of 32. Throws std::bad_alloc.
PackedMatrix pack_quantized(
    Arena& arena,
    int rows,
    int columns,
    int bits,
    int group_size,
    FloatType type,
    const QuantizedSource& source);

// `values`: [rows, columns] of `type`, like a source above.
// Throws std::bad_alloc.
PackedMatrix pack_dense(
    Arena& arena,
    int rows,
    int columns,
    FloatType type,
    const std::byte* values);

// The row in f32: [columns]. Requires: 0 <= row < rows.
void unpack_row(const PackedMatrix& matrix, int row, float* out);

} // namespace ingle
