#include "model/layer_inputs.h"

#include <numbers>

#include <mlx/fast.h>
#include <mlx/ops.h>

#include "kernels/layer_inputs.h"
#include "model/kernel_compute.h"

namespace ingle {
namespace {

mx::array times(const mx::array& x, float scale) {
  return mx::multiply(x, mx::array(scale, x.dtype()));
}

mx::array run_ops(
    const std::vector<TokenId>& ids,
    const mx::array& x,
    const LayerInputWeights& weights,
    float eps) {
  const mx::array rows = take_rows(
      weights.table,
      mx::array(ids.data(), {static_cast<int>(ids.size())}, mx::int32));
  const int width = weights.norm.shape(0);
  const mx::array projected = mx::reshape(
      times(weights.projection(x), weights.projection_scale),
      {x.shape(0), rows.shape(1) / width, width});
  const mx::array normed = mx::reshape(
      mx::fast::rms_norm(projected, weights.norm, eps), rows.shape());
  return times(
      mx::add(normed, times(rows, weights.table_scale)),
      1 / std::numbers::sqrt2_v<float>);
}

} // namespace

mx::array layer_inputs(
    const Step& step,
    const mx::array& x,
    const LayerInputWeights& weights,
    float eps) {
  const std::vector<TokenId> ids = token_ids(step);
  if (step.kernels() == nullptr) {
    return run_ops(ids, x, weights, eps);
  }
  CpuKernels& kernels = *step.kernels();
  const int columns = weights.table.packed.columns;
  return computed(kernels, x.shape(0), columns, [&](float* out) {
    layer_inputs(
        kernels.context(),
        {.table = &weights.table.packed,
         .projection = linear_view(weights.projection),
         .norm = norm_view(weights.norm, eps),
         .width = weights.norm.shape(0),
         .table_scale = weights.table_scale,
         .projection_scale = weights.projection_scale},
        ids,
        x.data<float>(),
        out);
  });
}

mx::array layer_input_and_add(
    const Step& step,
    const mx::array& x,
    const LayerInputBlock& block,
    float eps) {
  const mx::array& all = *step.layer_inputs();
  const int width = block.mlp.gate.matrix.weight.shape(0);
  const int begin = static_cast<int>(block.layer) * width;
  const mx::array own =
      mx::slice(all, {0, begin}, {all.shape(0), begin + width});
  return mlp_and_add(step, x, block.mlp, eps, own);
}

} // namespace ingle
