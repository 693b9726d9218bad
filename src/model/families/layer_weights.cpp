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

bool has_taps_last(const WeightSource& weights, const std::string& name) {
  const auto shape = weights.shape_of(name);
  return shape && !shape->empty() && shape->back() != 1;
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

namespace {

// The convolution's, of a file of either kind: [taps, channels].
Result<mx::array> take_conv(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  const int channels = config.gated_delta.channels();
  const int taps = config.gated_delta.taps;
  const std::string name = path + "conv1d.weight";
  INGLE_ASSIGN_OR_RETURN(
      const mx::array conv,
      weights.take(
          name,
          has_taps_last(weights, name) ? mx::Shape{channels, 1, taps}
                                       : mx::Shape{channels, taps, 1}));
  return run_mlx("load", [&] {
    mx::array turned =
        mx::contiguous(mx::transpose(mx::reshape(conv, {channels, taps})));
    mx::eval(turned);
    return turned;
  });
}

} // namespace

Result<GatedDeltaWeights> take_gated_delta(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const GatedDeltaShape& shape = config.gated_delta;
  const int hidden = config.hidden_size;
  const int heads = shape.value_heads;
  const std::string path = layer + ".linear_attn.";
  const auto projection = [&](const char* name, int in, int out) {
    return weights.take_linear(path + name, in, out, false);
  };
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(config, weights, layer + ".input_layernorm", hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto qkv, projection("in_proj_qkv", hidden, shape.channels()));
  INGLE_ASSIGN_OR_RETURN(
      auto z, projection("in_proj_z", hidden, shape.value_width()));
  INGLE_ASSIGN_OR_RETURN(auto b, projection("in_proj_b", hidden, heads));
  INGLE_ASSIGN_OR_RETURN(auto a, projection("in_proj_a", hidden, heads));
  INGLE_ASSIGN_OR_RETURN(
      auto out, projection("out_proj", shape.value_width(), hidden));
  INGLE_ASSIGN_OR_RETURN(auto conv, take_conv(config, weights, path));
  INGLE_ASSIGN_OR_RETURN(auto decay_log, weights.take(path + "A_log", {heads}));
  INGLE_ASSIGN_OR_RETURN(
      auto decay_bias, weights.take(path + "dt_bias", {heads}));
  INGLE_ASSIGN_OR_RETURN(
      auto head_norm, weights.take(path + "norm.weight", {shape.value_dim}));
  INGLE_RETURN_IF_ERROR(run_mlx("load", [&] {
    decay_log = mx::exp(mx::astype(decay_log, mx::float32));
    decay_bias = mx::astype(decay_bias, mx::float32);
    mx::eval(decay_log, decay_bias);
  }));
  return GatedDeltaWeights{
      std::move(norm),
      std::move(qkv),
      std::move(z),
      std::move(b),
      std::move(a),
      std::move(out),
      std::move(conv),
      std::move(decay_log),
      std::move(decay_bias),
      std::move(head_norm)};
}

Result<MoeWeights> take_moe(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const auto& [count, per_token, inner, renormalises] = config.experts;
  const int hidden = config.hidden_size;
  const std::string path = layer + ".mlp";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(config, weights, layer + ".post_attention_layernorm", hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto router, weights.take_linear(path + ".gate", hidden, count, false));
  INGLE_ASSIGN_OR_RETURN(
      auto gate, weights.take_experts(path, "gate_proj", count, inner, hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto up, weights.take_experts(path, "up_proj", count, inner, hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto down, weights.take_experts(path, "down_proj", count, hidden, inner));
  return MoeWeights{
      std::move(norm),
      std::move(router),
      std::move(gate),
      std::move(up),
      std::move(down),
      per_token,
      renormalises};
}

} // namespace ingle
