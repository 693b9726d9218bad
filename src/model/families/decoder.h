// The dense decoder: residual blocks of grouped-query attention with rotary
// positions and of a gated MLP, with norms before or after them. Touvron et
// al., "LLaMA" (2023), "Llama 2" (2023); the config says in which variant.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/kv_config.h"
#include "model/model.h"
#include "model/weight_source.h"

namespace ingle {

// Takes every tensor from `weights`; leftovers are the caller's to check. With
// MLX's own ops the KV state is kept in the type of the norms, where `kv` does
// not say otherwise. `kernels` are those of `weights`, or null.
// Errors: kCorruption (a tensor is missing or has another shape).
Result<std::unique_ptr<const Model>> load_decoder(
    const ModelConfig& config,
    const KvQuantizations& kv,
    WeightSource& weights,
    std::unique_ptr<CpuKernels> kernels);

// An empty state for such a model. `dtype`: of its rows, where MLX's own ops
// compute and not the kernels.
KvState make_decoder_kv(
    const ModelConfig& config,
    const KvQuantizations& kv,
    mx::Dtype dtype,
    bool for_kernels);

} // namespace ingle
