// The weights of a decoder's blocks on their way out of a file. `layer` is the
// path of a layer: each takes what is its own below it.
//
// Threads and errors: as those of WeightSource.
#pragma once

#include <optional>
#include <string>

#include "model/block.h"
#include "model/config.h"
#include "model/weight_source.h"

namespace ingle {

AttentionShape attention_shape(
    const ModelConfig& config,
    const LayerConfig& layer,
    const std::optional<KvQuantization>& kv);

Result<AttentionWeights> take_attention(
    const ModelConfig& config,
    const LayerConfig& own,
    WeightSource& weights,
    const std::string& layer);

Result<GatedDeltaWeights> take_gated_delta(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer);

Result<MlpWeights> take_mlp(
    const ModelConfig& config,
    const LayerConfig& own,
    WeightSource& weights,
    const std::string& layer);

// Of the layer `number`.
Result<LayerInputBlock> take_layer_input(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer,
    size_t number);

// 1 where the layer has none.
Result<float> take_layer_scalar(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer);

// What is there for all layers' inputs, below the path of the model; nothing
// where they have none.
Result<std::optional<LayerInputWeights>> take_layer_inputs(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& model);

Result<MoeWeights> take_moe(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer);

// With the MLP beside it.
Result<MoeWeights> take_moe_beside_mlp(
    const ModelConfig& config,
    const LayerConfig& own,
    WeightSource& weights,
    const std::string& layer);

// A norm as it multiplies, times `scale`: [width].
Result<mx::array> take_norm(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path,
    int width,
    float scale = 1);

// Its bias; nothing where the model's norms have none.
Result<std::optional<mx::array>> take_norm_bias(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path);

// Nothing: tied to the embedding.
Result<std::optional<Matrix>> take_head(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path);

// Of a convolution: whether it is as it was published, and not as MLX's
// converters leave it.
bool has_taps_last(const WeightSource& weights, const std::string& name);

} // namespace ingle
