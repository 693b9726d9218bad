// The second half of a layer as a mixture of experts: a router picks for each
// token a few of many gated MLPs, and their sum by its weights is what is
// added. Shazeer et al., "Outrageously Large Neural Networks" (2017).
//
// The tokens of all rows are grouped by expert, and an expert's matrices are
// read once for all of its tokens. A token's results are the same bits whatever
// tokens are beside it, however a prompt is cut into steps, and for any number
// of threads: what each of its experts makes of it is kept apart, and added up
// in the order of the experts' indices.
//
// Letters: T tokens of all rows together, D hidden size, E experts, M inner
//          size of one.
// Threads: as in layer.h. Throws std::bad_alloc, before `out` is touched.
#pragma once

#include <span>

#include "kernels/layer.h"

namespace ingle {

// A gated MLP.
struct ExpertView {
  LinearView gate; // [M, D]
  LinearView up; // [M, D]
  LinearView down; // [D, M]
};

struct MoeView {
  NormView norm; // weight not null
  LinearView router; // [E, D]
  std::span<const PackedMatrix> gate; // [E], each [M, D], all of one format
  std::span<const PackedMatrix> up; // like gate, maybe of another format
  std::span<const PackedMatrix> down; // [E], each [D, M], all of one format
  // Of those, if any: [E, M], [E, M], [E, D].
  const float* gate_bias = nullptr;
  const float* up_bias = nullptr;
  const float* down_bias = nullptr;
  int top_k = 0; // experts of a token: 1 to E
  bool renormalises = false; // their weights add up to 1
  Activation activation = Activation::kSilu;
  // One more that all tokens have, with the weight sigmoid(share(n)), maybe of
  // another inner size; matrices null: none.
  ExpertView shared{};
  LinearView share{}; // [1, D]
  // Before the router alone; weight null: it sees what experts see. Not with a
  // shared expert.
  NormView router_norm{};
  const float* expert_scales = nullptr; // [E], of their weights; null: 1
  NormView sum_norm{}; // of a token's experts' sum; weight null: none
  // An MLP of x: what it would add is added to that sum. Null: none.
  const MlpView* beside = nullptr;
  ResidualView residual{};
};

struct ExpertChoice {
  int expert = 0;
  float weight = 0;
};

// Softmax over the router's logits, [E], which it overwrites; the `choices`
// most probable experts, of equal ones those of the smaller index, in the order
// of their indices. Requires: 1 <= choices.size() <= logits.size().
void choose_experts(
    std::span<float> logits,
    bool renormalises,
    std::span<ExpertChoice> choices);

// x and sum(weight * down(activation(gate(n)) * up(n))) over a token's experts,
// the shared one last, n = norm(x), with what the view has more, by its
// residual: [T, D]. `out` may be x. The router's inputs
// have two planes, also where the layers have one: a rounded one picks another
// expert.
void moe_and_add(
    KernelContext& context,
    const MoeView& view,
    int tokens,
    const float* x,
    float* out);

} // namespace ingle
