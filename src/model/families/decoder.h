// The dense decoder: residual blocks of grouped-query attention with rotary
// positions and of a gated MLP, with norms before or after them. Touvron et
// al., "LLaMA" (2023), "Llama 2" (2023); the config says in which variant.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/kv_config.h"
#include "model/model.h"
#include "model/ops.h"
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

// The parts of it, for families that compose them in another way. The first
// three take what stands below `path`, the path of a layer, or of the norm.

Result<AttentionWeights> take_attention(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path);

Result<MlpWeights> take_mlp(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path);

// A norm as it multiplies, times `scale`: [width].
Result<mx::array> take_norm(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path,
    int width,
    float scale = 1);

// Nothing: tied to the embedding.
Result<std::optional<Matrix>> take_head(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path = "lm_head");

AttentionShape attention_shape(
    const ModelConfig& config,
    const LayerConfig& layer,
    const std::optional<KvQuantization>& kv);

} // namespace ingle
