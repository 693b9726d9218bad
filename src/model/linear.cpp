#include "model/linear.h"

#include <mlx/ops.h>

namespace ingle {

const char* to_mlx(QuantizationMode mode) {
  return mode == QuantizationMode::kMxfp4 ? "mxfp4" : "affine";
}

mx::array multiply(const mx::array& x, const Matrix& matrix) {
  if (!matrix.scales) {
    return mx::matmul(x, mx::transpose(matrix.weight));
  }
  return mx::quantized_matmul(
      x,
      matrix.weight,
      *matrix.scales,
      matrix.biases,
      /*transpose=*/true,
      matrix.quantization.group_size,
      matrix.quantization.bits,
      to_mlx(matrix.quantization.mode));
}

mx::array take_rows(const Matrix& matrix, const mx::array& ids) {
  const mx::array rows = mx::take(matrix.weight, ids, 0);
  if (!matrix.scales) {
    return rows;
  }
  return mx::dequantize(
      rows,
      mx::take(*matrix.scales, ids, 0),
      matrix.biases ? std::optional(mx::take(*matrix.biases, ids, 0))
                    : std::nullopt,
      matrix.quantization.group_size,
      matrix.quantization.bits,
      to_mlx(matrix.quantization.mode));
}

namespace {

mx::array gather_products(
    const mx::array& x,
    const ExpertMatrices& matrices,
    const mx::array& experts) {
  if (!matrices.scales) {
    return mx::gather_mm(
        x, mx::swapaxes(matrices.weight, -1, -2), std::nullopt, experts);
  }
  return mx::gather_qmm(
      x,
      matrices.weight,
      *matrices.scales,
      matrices.biases,
      std::nullopt,
      experts,
      /*transpose=*/true,
      matrices.quantization.group_size,
      matrices.quantization.bits,
      to_mlx(matrices.quantization.mode));
}

} // namespace

mx::array multiply_chosen(
    const mx::array& x,
    const ExpertMatrices& matrices,
    const mx::array& experts) {
  const mx::array y = gather_products(x, matrices, experts);
  return matrices.bias
      ? mx::add(y, mx::expand_dims(mx::take(*matrices.bias, experts, 0), 2))
      : y;
}

mx::array Linear::operator()(const mx::array& x) const {
  const mx::array y = multiply(x, matrix);
  return bias ? mx::add(y, *bias) : y;
}

} // namespace ingle
