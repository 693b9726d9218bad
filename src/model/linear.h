// Weights that multiply: dense or quantised, behind one call.
//
// Threads: the engine thread.
#pragma once

#include <optional>

#include <mlx/array.h>

#include "model/config.h"

namespace ingle {

namespace mx = mlx::core;

// A matrix [rows, columns]: dense, or packed with scales and biases.
struct Matrix {
  mx::array weight; // dense [rows, columns], or packed u32
  std::optional<mx::array> scales; // [rows, columns / group_size]
  std::optional<mx::array> biases; // like scales
  Quantization quantization; // only with scales
};

// x: [T, columns] -> x · matrixᵀ: [T, rows].
mx::array multiply(const mx::array& x, const Matrix& matrix);

// ids: [T] -> the matrix' rows: [T, columns].
mx::array take_rows(const Matrix& matrix, const mx::array& ids);

struct Linear {
  Matrix matrix; // [out, in]
  std::optional<mx::array> bias; // [out]

  // x: [T, in] -> [T, out].
  mx::array operator()(const mx::array& x) const;
};

} // namespace ingle
