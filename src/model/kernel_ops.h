// Blocks, and the ops of ops.h, on the CPU kernels. Where its input is there,
// an op computes at once: what it touches is still in the processor's caches,
// and no thread of MLX's has to be woken. Where it is not (an op of MLX's made
// it), the op is a primitive, which computes when it is evaluated, on the
// thread of its stream; all that it is given by reference, and the caches,
// outlive that.
#pragma once

#include "model/block.h"
#include "model/ops.h"

namespace ingle {

mx::array kernel_embed(
    CpuKernels& kernels,
    std::span<const TokenId> ids,
    const Matrix& embedding,
    float scale);

// blocks: at least one.
mx::array kernel_run_blocks(
    Step& step,
    const mx::array& x,
    std::span<const Block> blocks,
    float eps);

mx::array kernel_take_rows(
    CpuKernels& kernels,
    const mx::array& x,
    std::vector<int> rows);

mx::array kernel_norm_and_head(
    CpuKernels& kernels,
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps,
    float soft_cap,
    const mx::array* norm_bias);

} // namespace ingle
