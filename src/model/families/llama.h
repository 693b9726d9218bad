// The llama family: pre-norm residual blocks, grouped-query attention with
// rotary positions, SwiGLU. Touvron et al., "LLaMA" (2023), "Llama 2" (2023).
#pragma once

#include <memory>

#include "base/status.h"
#include "model/model.h"
#include "model/weight_source.h"

namespace ingle {

// Takes every tensor from `weights`; leftovers are the caller's to check. With
// MLX's own ops the KV state is kept in the type of the norms. `kernels` are
// those of `weights`, or null.
// Errors: kCorruption (a tensor is missing or has another shape).
Result<std::unique_ptr<const Model>> load_llama(
    const ModelConfig& config,
    WeightSource& weights,
    std::unique_ptr<CpuKernels> kernels);

} // namespace ingle
