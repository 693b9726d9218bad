// A block that is a mixture of experts; kernels/moe.h says what it computes.
//
// Letters: T tokens of all rows together, D hidden size, E experts, M inner
//          size of one.
// Threads: as in ops.h, and it throws the same.
#pragma once

#include "kernels/moe.h"
#include "model/ops.h"

namespace ingle {

// An expert that all tokens have, with its own share: sigmoid(share(n)).
struct SharedExpert {
  Linear share; // D -> 1
  Linear gate; // D -> M', maybe of another size than the others
  Linear up; // D -> M'
  Linear down; // M' -> D
};

struct MoeWeights {
  mx::array norm; // [D], before the router and the experts
  Linear router; // D -> E
  ExpertMatrices gate; // D -> M
  ExpertMatrices up; // D -> M
  ExpertMatrices down; // M -> D
  int top_k = 0; // experts of a token: 1 to E
  bool renormalises = false; // their weights add up to 1
  Activation activation = Activation::kSilu;
  std::optional<SharedExpert> shared{};
  // Before the router alone: [D]; none: it sees what experts see. Not with a
  // shared expert.
  std::optional<mx::array> router_norm{};
  std::optional<mx::array> expert_scales{}; // [E] in f32, of their weights
  std::optional<mx::array> sum_norm{}; // [D], of a token's experts' sum
  // An MLP of x: what it would add is added to that sum.
  std::optional<MlpWeights> beside{};
  Residual residual{};
};

// x and sum(weight * down(activation(gate(n)) * up(n))) over each token's
// experts, and the one that all have, n = norm(x), with what the weights have
// more, by their residual, in MLX's own ops: [T, D].
mx::array moe_and_add(
    const Step& step,
    const mx::array& x,
    const MoeWeights& weights,
    float eps);

// What the kernels see of it. `beside`: of the MLP beside it, or null.
MoeView
kernel_view(const MoeWeights& weights, float eps, const MlpView* beside);

} // namespace ingle
