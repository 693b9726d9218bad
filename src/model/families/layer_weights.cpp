#include "model/families/layer_weights.h"

#include <array>

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
      config.num_key_value_heads,
      config.head_dim,
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
    int width) {
  if (config.qk_norm == QkNorm::kNone) {
    return std::optional<mx::array>();
  }
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(
          config,
          weights,
          path,
          config.qk_norm == QkNorm::kHead ? config.head_dim : width));
  return std::optional<mx::array>(std::move(norm));
}

// Of queries, keys and values.
Result<std::vector<Linear>> take_projections(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  const int hidden = config.hidden_size;
  const int q_width = config.num_attention_heads * config.head_dim;
  const int kv_width = config.num_key_value_heads * config.head_dim;
  const int gates_width = config.has_attention_gates ? q_width : 0;
  if (config.fused_qkv) {
    return weights.take_linears(
        path + "qkv_proj",
        hidden,
        std::array{q_width, kv_width, kv_width},
        config.qkv_bias);
  }
  std::vector<Linear> projections;
  for (const auto& [name, width] :
       {std::pair{"q_proj", q_width + gates_width},
        std::pair{"k_proj", kv_width},
        std::pair{"v_proj", kv_width}}) {
    INGLE_ASSIGN_OR_RETURN(
        auto projection,
        weights.take_linear(path + name, hidden, width, config.qkv_bias));
    projections.push_back(std::move(projection));
  }
  return projections;
}

} // namespace

Result<AttentionWeights> take_attention(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const int hidden = config.hidden_size;
  const int q_width = config.num_attention_heads * config.head_dim;
  const int kv_width = config.num_key_value_heads * config.head_dim;
  const std::string path = layer + ".self_attn.";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_layer_norm(config, weights, layer, config.norms.before_attention));
  INGLE_ASSIGN_OR_RETURN(
      auto norm_bias,
      take_norm_bias(
          config, weights, layer + "." + config.norms.before_attention));
  INGLE_ASSIGN_OR_RETURN(auto qkv, take_projections(config, weights, path));
  INGLE_ASSIGN_OR_RETURN(
      auto o,
      weights.take_linear(
          path + "o_proj", q_width, hidden, config.output_bias));
  INGLE_ASSIGN_OR_RETURN(
      auto q_norm, take_qk_norm(config, weights, path + "q_norm", q_width));
  INGLE_ASSIGN_OR_RETURN(
      auto k_norm, take_qk_norm(config, weights, path + "k_norm", kv_width));
  INGLE_ASSIGN_OR_RETURN(
      auto added_norm,
      take_layer_norm(config, weights, layer, config.norms.after_attention));
  weights.drop(path + "rotary_emb.inv_freq"); // older files store the table
  return AttentionWeights{
      std::move(norm),
      std::move(qkv[0]),
      std::move(qkv[1]),
      std::move(qkv[2]),
      std::move(o),
      std::move(q_norm),
      std::move(k_norm),
      {std::move(added_norm), config.residual_scale},
      config.has_attention_gates,
      std::move(norm_bias)};
}

namespace {

// The gate and, unless the MLP is plain, what it gates.
Result<std::vector<Linear>> take_gate_and_up(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  const int hidden = config.hidden_size;
  const int inner = config.intermediate_size;
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
    WeightSource& weights,
    const std::string& layer) {
  const std::string path = layer + ".mlp.";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_layer_norm(config, weights, layer, config.norms.before_mlp));
  INGLE_ASSIGN_OR_RETURN(
      auto norm_bias,
      take_norm_bias(config, weights, layer + "." + config.norms.before_mlp));
  INGLE_ASSIGN_OR_RETURN(auto in, take_gate_and_up(config, weights, path));
  INGLE_ASSIGN_OR_RETURN(
      auto down,
      weights.take_linear(
          path + (config.mlp == MlpKind::kPlain ? "c_proj" : "down_proj"),
          config.intermediate_size,
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
