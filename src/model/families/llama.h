// The llama family: pre-norm residual blocks, grouped-query attention with
// rotary positions, SwiGLU. Touvron et al., "LLaMA" (2023), "Llama 2" (2023).
#pragma once

#include <memory>

#include "base/status.h"
#include "model/model.h"
#include "model/weight_source.h"

namespace ingle {

// Takes every tensor from `weights`; leftovers are the caller's to check. The
// KV state is kept in the type of the norms.
// Errors: kCorruption (a tensor is missing or has another shape).
Result<std::unique_ptr<const Model>> load_llama(
    const ModelConfig& config,
    WeightSource& weights);

} // namespace ingle
