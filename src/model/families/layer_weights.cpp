#include "model/families/layer_weights.h"

#include <array>
#include <cmath>

#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "model/run_mlx.h"

namespace ingle {

AttentionShape attention_shape(
    const ModelConfig& config,
    const LayerConfig& layer,
    const std::optional<KvQuantization>& kv) {
  return {
      config.num_attention_heads,
      config.key_value_heads_of(layer),
      config.head_dim_of(layer),
      config.attention_scale,
      config.attention_soft_cap,
      layer.window,
      kv};
}

Result<mx::array> take_norm(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path,
    int width,
    float scale) {
  INGLE_ASSIGN_OR_RETURN(auto norm, weights.take(path + ".weight", {width}));
  if (!config.norms_add_one && scale == 1) {
    return norm;
  }
  return run_mlx("load", [&] {
    const mx::array one =
        mx::array(config.norms_add_one ? 1.0f : 0.0f, norm.dtype());
    mx::array applied =
        mx::multiply(mx::add(norm, one), mx::array(scale, norm.dtype()));
    mx::eval(applied);
    return applied;
  });
}

Result<std::optional<mx::array>> take_norm_bias(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  if (!config.layer_norms) {
    return std::optional<mx::array>();
  }
  INGLE_ASSIGN_OR_RETURN(
      auto bias, weights.take(path + ".bias", {config.hidden_size}));
  return std::optional<mx::array>(std::move(bias));
}

namespace {

// One of a layer; nothing where the layer has none of that kind.
Result<std::optional<mx::array>> take_layer_norm(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer,
    const std::string& name) {
  if (name.empty()) {
    return std::optional<mx::array>();
  }
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(config, weights, layer + "." + name, config.hidden_size));
  return std::optional<mx::array>(std::move(norm));
}

Result<std::optional<mx::array>> take_qk_norm(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path,
    int head_dim,
    int heads) {
  if (config.qk_norm == QkNorm::kNone) {
    return std::optional<mx::array>();
  }
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(
          config,
          weights,
          path,
          config.qk_norm == QkNorm::kHead ? head_dim : heads * head_dim));
  return std::optional<mx::array>(std::move(norm));
}

// Of queries, keys and values: as many as the layer has.
Result<std::vector<Linear>> take_projections(
    const ModelConfig& config,
    const LayerConfig& own,
    WeightSource& weights,
    const std::string& path) {
  const int hidden = config.hidden_size;
  const int q_width = config.num_attention_heads * config.head_dim_of(own);
  const int kv_width = config.key_value_heads_of(own) * config.head_dim_of(own);
  const int gates_width = config.has_attention_gates ? q_width : 0;
  if (config.fused_qkv) {
    return weights.take_linears(
        path + "qkv_proj",
        hidden,
        std::array{q_width, kv_width, kv_width},
        config.qkv_bias);
  }
  std::vector<std::pair<const char*, int>> parts = {
      {"q_proj", q_width + gates_width}};
  if (!own.donor) {
    parts.emplace_back("k_proj", kv_width);
  }
  if (!own.donor && !own.values_are_keys) {
    parts.emplace_back("v_proj", kv_width);
  }
  std::vector<Linear> projections;
  for (const auto& [name, width] : parts) {
    INGLE_ASSIGN_OR_RETURN(
        auto projection,
        weights.take_linear(path + name, hidden, width, config.qkv_bias));
    projections.push_back(std::move(projection));
  }
  return projections;
}

// Norms of queries, keys and values.
struct HeadNorms {
  std::optional<mx::array> q;
  std::optional<mx::array> k;
  std::optional<mx::array> v;
};

Result<HeadNorms> take_head_norms(
    const ModelConfig& config,
    const LayerConfig& own,
    WeightSource& weights,
    const std::string& path) {
  const int dim = config.head_dim_of(own);
  const int heads = config.num_attention_heads;
  const int kv_heads = config.key_value_heads_of(own);
  HeadNorms norms;
  INGLE_ASSIGN_OR_RETURN(
      norms.q, take_qk_norm(config, weights, path + "q_norm", dim, heads));
  if (own.donor) {
    return norms;
  }
  INGLE_ASSIGN_OR_RETURN(
      norms.k, take_qk_norm(config, weights, path + "k_norm", dim, kv_heads));
  if (!config.norms_values) {
    return norms;
  }
  INGLE_ASSIGN_OR_RETURN(norms.v, run_mlx("load", [&] {
                           mx::array ones = mx::ones_like(*norms.k);
                           mx::eval(ones);
                           return std::optional(std::move(ones));
                         }));
  return norms;
}

// Of attention's heads; nothing where they have none.
Result<std::optional<mx::array>> take_sinks(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  if (!config.has_sinks) {
    return std::optional<mx::array>();
  }
  INGLE_ASSIGN_OR_RETURN(
      auto sinks, weights.take(path + "sinks", {config.num_attention_heads}));
  return std::optional<mx::array>(std::move(sinks));
}

// Keys and values that files have of layers that attend to others'.
void drop_shared(WeightSource& weights, const std::string& path) {
  for (const char* module : {"k_proj.", "v_proj.", "k_norm."}) {
    weights.drop_all(path + module);
  }
}

} // namespace

Result<AttentionWeights> take_attention(
    const ModelConfig& config,
    const LayerConfig& own,
    WeightSource& weights,
    const std::string& layer) {
  const int hidden = config.hidden_size;
  const int q_width = config.num_attention_heads * config.head_dim_of(own);
  const std::string path = layer + ".self_attn.";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_layer_norm(config, weights, layer, config.norms.before_attention));
  INGLE_ASSIGN_OR_RETURN(
      auto norm_bias,
      take_norm_bias(
          config, weights, layer + "." + config.norms.before_attention));
  INGLE_ASSIGN_OR_RETURN(
      auto qkv, take_projections(config, own, weights, path));
  INGLE_ASSIGN_OR_RETURN(
      auto o,
      weights.take_linear(
          path + "o_proj", q_width, hidden, config.output_bias));
  INGLE_ASSIGN_OR_RETURN(
      auto norms, take_head_norms(config, own, weights, path));
  INGLE_ASSIGN_OR_RETURN(
      auto added_norm,
      take_layer_norm(config, weights, layer, config.norms.after_attention));
  weights.drop(path + "rotary_emb.inv_freq"); // older files store the table
  if (own.donor) {
    drop_shared(weights, path);
  }
  const auto projection = [&](size_t i) {
    return i < qkv.size() ? std::optional(std::move(qkv[i])) : std::nullopt;
  };
  INGLE_ASSIGN_OR_RETURN(auto sinks, take_sinks(config, weights, path));
  return AttentionWeights{
      .norm = std::move(norm),
      .q = std::move(qkv[0]),
      .k = projection(1),
      .v = projection(2),
      .o = std::move(o),
      .q_norm = std::move(norms.q),
      .k_norm = std::move(norms.k),
      .residual = {std::move(added_norm), config.residual_scale},
      .has_gates = config.has_attention_gates,
      .norm_bias = std::move(norm_bias),
      .sinks = std::move(sinks),
      .v_norm = std::move(norms.v)};
}

namespace {

// The gate and, unless the MLP is plain, what it gates.
Result<std::vector<Linear>> take_gate_and_up(
    const ModelConfig& config,
    int inner,
    WeightSource& weights,
    const std::string& path) {
  const int hidden = config.hidden_size;
  const bool bias = config.mlp_bias;
  if (config.mlp == MlpKind::kFusedGated) {
    return weights.take_linears(
        path + "gate_up_proj", hidden, std::array{inner, inner}, bias);
  }
  std::vector<Linear> linears;
  const auto take = [&](const char* name) -> Status {
    INGLE_ASSIGN_OR_RETURN(
        auto linear, weights.take_linear(path + name, hidden, inner, bias));
    linears.push_back(std::move(linear));
    return Status::ok();
  };
  if (config.mlp == MlpKind::kPlain) {
    INGLE_RETURN_IF_ERROR(take("c_fc"));
  } else {
    INGLE_RETURN_IF_ERROR(take("gate_proj"));
    INGLE_RETURN_IF_ERROR(take("up_proj"));
  }
  return linears;
}

} // namespace

Result<MlpWeights> take_mlp(
    const ModelConfig& config,
    const LayerConfig& own,
    WeightSource& weights,
    const std::string& layer) {
  const int inner = config.intermediate_size_of(own);
  const std::string path = layer + ".mlp.";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_layer_norm(config, weights, layer, config.norms.before_mlp));
  INGLE_ASSIGN_OR_RETURN(
      auto norm_bias,
      take_norm_bias(config, weights, layer + "." + config.norms.before_mlp));
  INGLE_ASSIGN_OR_RETURN(
      auto in, take_gate_and_up(config, inner, weights, path));
  INGLE_ASSIGN_OR_RETURN(
      auto down,
      weights.take_linear(
          path + (config.mlp == MlpKind::kPlain ? "c_proj" : "down_proj"),
          inner,
          config.hidden_size,
          config.mlp_bias));
  INGLE_ASSIGN_OR_RETURN(
      auto added_norm,
      take_layer_norm(config, weights, layer, config.norms.after_mlp));
  return MlpWeights{
      std::move(norm),
      std::move(in.front()),
      in.size() > 1 ? std::optional(std::move(in.back())) : std::nullopt,
      std::move(down),
      config.activation,
      {std::move(added_norm), config.residual_scale},
      std::move(norm_bias)};
}

Result<LayerInputBlock> take_layer_input(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer,
    size_t number) {
  const int hidden = config.hidden_size;
  const int width = config.layer_inputs.width;
  INGLE_ASSIGN_OR_RETURN(
      auto gate,
      weights.take_linear(
          layer + ".per_layer_input_gate", hidden, width, false));
  INGLE_ASSIGN_OR_RETURN(
      auto down,
      weights.take_linear(
          layer + ".per_layer_projection", width, hidden, false));
  INGLE_ASSIGN_OR_RETURN(
      auto added_norm,
      take_norm(config, weights, layer + ".post_per_layer_input_norm", hidden));
  return LayerInputBlock{
      {.norm = std::nullopt,
       .gate = std::move(gate),
       .up = std::nullopt,
       .down = std::move(down),
       .activation = config.activation,
       .residual = {std::move(added_norm)}},
      number};
}

Result<float> take_layer_scalar(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const std::string name = layer + ".layer_scalar";
  if (!config.has_layer_scalars || !weights.has(name)) {
    return 1.0f;
  }
  INGLE_ASSIGN_OR_RETURN(const auto scalar, weights.take(name, {1}));
  return run_mlx(
      "load", [&] { return mx::astype(scalar, mx::float32).item<float>(); });
}

Result<std::optional<LayerInputWeights>> take_layer_inputs(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& model) {
  const auto& [width, vocab_size] = config.layer_inputs;
  if (width == 0) {
    return std::optional<LayerInputWeights>();
  }
  const int hidden = config.hidden_size;
  const int all = config.num_hidden_layers * width;
  INGLE_ASSIGN_OR_RETURN(
      auto table,
      weights.take_matrix(model + ".embed_tokens_per_layer", vocab_size, all));
  INGLE_ASSIGN_OR_RETURN(
      auto projection,
      weights.take_linear(
          model + ".per_layer_model_projection", hidden, all, false));
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(config, weights, model + ".per_layer_projection_norm", width));
  return std::optional(LayerInputWeights{
      std::move(table),
      std::move(projection),
      std::move(norm),
      std::sqrt(static_cast<float>(width)),
      1 / std::sqrt(static_cast<float>(hidden))});
}

Result<std::optional<Matrix>> take_head(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  if (config.tie_word_embeddings.value_or(!weights.has(path + ".weight"))) {
    // Some files store the embedding twice.
    for (const char* part : {".weight", ".scales", ".biases"}) {
      weights.drop(path + part);
    }
    return std::optional<Matrix>();
  }
  INGLE_ASSIGN_OR_RETURN(
      auto head,
      weights.take_matrix(path, config.vocab_size, config.hidden_size));
  return std::optional<Matrix>(std::move(head));
}

} // namespace ingle
