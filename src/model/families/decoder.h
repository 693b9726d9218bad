// The decoder: layers of a half that looks back (grouped-query attention with
// rotary positions, or a gated delta net) and of one that does not (a gated
// MLP, or a mixture of them), with norms before or after them; after both, some
// have a block that takes in what a layer gets for itself. Touvron et al.,
// "LLaMA" (2023), "Llama 2" (2023); the config says in which variant.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/kv_config.h"
#include "model/model.h"
#include "model/weight_source.h"

namespace ingle {

// Takes every tensor of the language model from `weights`, and drops those of
// parts that see, hear or guess tokens ahead; leftovers are the caller's to
// check. With MLX's own ops the KV state is kept in the type of the norms,
// where `kv` does not say otherwise. `kernels` are those of `weights`, or null.
// Errors: kCorruption (a tensor is missing or has another shape).
Result<std::unique_ptr<const Model>> load_decoder(
    const ModelConfig& config,
    const KvQuantizations& kv,
    WeightSource& weights,
    std::unique_ptr<CpuKernels> kernels);

} // namespace ingle
