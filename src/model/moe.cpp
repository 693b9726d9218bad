#include "model/moe.h"

#include <mlx/fast.h>
#include <mlx/ops.h>

#include "model/kernel_compute.h"

namespace ingle {
namespace {

// Of each token, in the order of the experts' indices.
struct Choices {
  mx::array experts; // [T, top_k]
  mx::array weights; // [T, top_k] in f32
};

// Among equals the smaller index: the sort is stable.
Choices choose(const mx::array& logits, const MoeWeights& of) {
  const mx::array probabilities =
      mx::softmax(mx::astype(logits, mx::float32), std::vector<int>{-1}, true);
  const mx::array order = mx::argsort(mx::negative(probabilities), -1);
  const mx::array experts =
      mx::sort(mx::slice(order, {0, 0}, {order.shape(0), of.top_k}), -1);
  mx::array weights = mx::take_along_axis(probabilities, experts, -1);
  if (of.renormalises) {
    weights = mx::divide(weights, mx::sum(weights, -1, true));
  }
  if (of.expert_scales) {
    weights = mx::multiply(weights, mx::take(*of.expert_scales, experts));
  }
  return {experts, weights};
}

const float* bias_of(const ExpertMatrices& matrices) {
  return matrices.bias ? matrices.bias->data<float>() : nullptr;
}

mx::array run(
    const SharedExpert& shared,
    Activation activation,
    const mx::array& normed) {
  const mx::array inner =
      pass_gate(activation, shared.gate(normed), shared.up(normed));
  return mx::multiply(mx::sigmoid(shared.share(normed)), shared.down(inner));
}

} // namespace

mx::array moe_and_add(
    const Step& step,
    const mx::array& x,
    const MoeWeights& weights,
    float eps) {
  const mx::array normed = mx::fast::rms_norm(x, weights.norm, eps);
  const Choices choices = choose(
      weights.router(
          weights.router_norm ? mx::fast::rms_norm(x, *weights.router_norm, eps)
                              : normed),
      weights);
  const mx::array each = mx::expand_dims(normed, {1, 2});
  const mx::array gate = multiply_chosen(each, weights.gate, choices.experts);
  const mx::array up = multiply_chosen(each, weights.up, choices.experts);
  const mx::array inner = pass_gate(weights.activation, gate, up);
  const mx::array results =
      mx::squeeze(multiply_chosen(inner, weights.down, choices.experts), 2);
  const mx::array sum =
      mx::sum(mx::multiply(results, mx::expand_dims(choices.weights, 2)), 1);
  mx::array added = mx::astype(sum, x.dtype());
  if (weights.shared) {
    added = mx::add(added, run(*weights.shared, weights.activation, normed));
  }
  if (weights.sum_norm) {
    added = mx::fast::rms_norm(added, *weights.sum_norm, eps);
  }
  if (weights.beside) {
    added = mx::add(added, mlp(step, x, *weights.beside, eps));
  }
  return add_residual(x, added, weights.residual, eps);
}

MoeView
kernel_view(const MoeWeights& weights, float eps, const MlpView* beside) {
  MoeView view{
      .norm = norm_view(weights.norm, eps),
      .router = linear_view(weights.router),
      .gate = weights.gate.packed,
      .up = weights.up.packed,
      .down = weights.down.packed,
      .gate_bias = bias_of(weights.gate),
      .up_bias = bias_of(weights.up),
      .down_bias = bias_of(weights.down),
      .top_k = weights.top_k,
      .renormalises = weights.renormalises,
      .activation = weights.activation,
      .router_norm = norm_view(weights.router_norm, eps),
      .expert_scales = weights.expert_scales
          ? weights.expert_scales->data<float>()
          : nullptr,
      .sum_norm = norm_view(weights.sum_norm, eps),
      .beside = beside,
      .residual = {
          norm_view(weights.residual.norm, eps),
          weights.residual.scale,
          weights.residual.total}};
  if (weights.shared) {
    view.shared = {
        .gate = linear_view(weights.shared->gate),
        .up = linear_view(weights.shared->up),
        .down = linear_view(weights.shared->down)};
    view.share = linear_view(weights.shared->share);
  }
  return view;
}

} // namespace ingle
