// The ops of ops.h as primitives of the CPU kernels: one each.
//
// A primitive computes on the thread that evaluates, when it is evaluated: its
// inputs are evaluated arrays and other such primitives' outputs. All that it
// reads but arrays (weights, caches' buffers) outlives the evaluation.
#pragma once

#include "model/ops.h"

namespace ingle {

// What mx::eval() does, for arrays that only such primitives lead to, without
// MLX's own threads: to wake one twice a step costs a core that computes.
void evaluate_kernels(const std::vector<mx::array>& outputs);

mx::array kernel_embed(
    CpuKernels& kernels,
    std::vector<TokenId> ids,
    const Matrix& embedding);

mx::array kernel_attend_and_add(
    Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer);

mx::array kernel_mlp_and_add(
    CpuKernels& kernels,
    const mx::array& x,
    const MlpWeights& weights,
    float eps);

// `tokens`: those of x whose logits are wanted.
mx::array kernel_norm_and_head(
    CpuKernels& kernels,
    std::vector<int> tokens,
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps);

} // namespace ingle
