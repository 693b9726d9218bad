// Weights that multiply: dense or quantised, behind one call.
//
// Threads: the engine thread.
#pragma once

#include <optional>
#include <vector>

#include <mlx/array.h>

#include "kernels/matrix.h"
#include "model/config.h"

namespace ingle {

namespace mx = mlx::core;

// A matrix [rows, columns]: dense or quantised in MLX's arrays, or packed for
// the CPU kernels.
struct Matrix {
  PackedMatrix packed{}; // of no rows, or all that there is
  mx::array weight = mx::array(0.0f); // dense [rows, columns], or packed u32
  std::optional<mx::array> scales{}; // [rows, columns / group_size]
  std::optional<mx::array> biases{}; // like scales; of MXFP4 none
  Quantization quantization{}; // only with scales
};

// As MLX calls it.
const char* to_mlx(QuantizationMode mode);

// With MLX's ops. x: [T, columns] -> x · matrixᵀ: [T, rows].
mx::array multiply(const mx::array& x, const Matrix& matrix);

// ids: [T] -> the matrix' rows: [T, columns].
mx::array take_rows(const Matrix& matrix, const mx::array& ids);

// As many matrices [rows, columns] as there are experts, all alike: as above,
// with their number before the rows.
struct ExpertMatrices {
  std::vector<PackedMatrix> packed{}; // empty, or all that there is
  mx::array weight = mx::array(0.0f);
  std::optional<mx::array> scales{};
  std::optional<mx::array> biases{};
  Quantization quantization{};
  std::optional<mx::array> bias{}; // [experts, rows], added to what they give
};

// With MLX's ops. x: [T, 1 or k, 1, columns]; experts: [T, k], which of the
// matrices -> [T, k, 1, rows].
mx::array multiply_chosen(
    const mx::array& x,
    const ExpertMatrices& matrices,
    const mx::array& experts);

struct Linear {
  Matrix matrix; // [out, in]
  std::optional<mx::array> bias; // [out]
  // Among those of the model's AdapterLayout; nothing: it is in none.
  std::optional<size_t> number{};

  // x: [T, in] -> [T, out].
  mx::array operator()(const mx::array& x) const;
};

} // namespace ingle
