// Qwen 3.5: residual layers whose first half is a gated delta net, and
// attention with gated heads in every fourth. What a layer adds is normed
// before its halves; the second one is a gated MLP, as in llama, or in all
// layers a mixture of them.
#include "model/families/families.h"

namespace ingle {
namespace {

Status read_gated_delta(
    FieldReader& fields,
    const std::string& origin,
    GatedDeltaShape& shape) {
  constexpr int kMaxHeads = 1024;
  constexpr int kMaxHeadDim = 1024;
  shape.key_heads = fields.size("linear_num_key_heads", kMaxHeads);
  shape.value_heads = fields.size("linear_num_value_heads", kMaxHeads);
  shape.key_dim = fields.size("linear_key_head_dim", kMaxHeadDim);
  shape.value_dim = fields.size("linear_value_head_dim", kMaxHeadDim);
  shape.taps = fields.size("linear_conv_kernel_dim", kMaxTaps);
  INGLE_RETURN_IF_ERROR(fields.status());
  if (shape.value_heads % shape.key_heads != 0) {
    return Status::corruption(
        origin + ": linear_num_value_heads (" +
        std::to_string(shape.value_heads) +
        ") is not a multiple of linear_num_key_heads (" +
        std::to_string(shape.key_heads) + ")");
  }
  if (shape.taps < 2) {
    return Status::corruption(
        origin + ": linear_conv_kernel_dim has to be at least 2");
  }
  return Status::ok();
}

// Which layers are recurrent, by name or else all but each `interval`-th.
Status read_layers(
    FieldReader& fields,
    const std::string& origin,
    std::vector<LayerConfig>& layers) {
  const auto interval = static_cast<size_t>(
      fields.optional_size("full_attention_interval").value_or(4));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].is_recurrent = (i + 1) % interval != 0;
  }
  const nlohmann::json* types = fields.find("layer_types");
  if (types == nullptr) {
    return Status::ok();
  }
  if (!types->is_array() || types->size() != layers.size()) {
    return Status::corruption(
        origin + ": layer_types has to be a list of " +
        std::to_string(layers.size()) + " names, one for each layer");
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const nlohmann::json& type = (*types)[i];
    if (type != "linear_attention" && type != "full_attention") {
      return Status::unsupported(
          origin + ": layer_types[" + std::to_string(i) +
          "] has to be linear_attention or full_attention; other layers are "
          "not supported");
    }
    layers[i].is_recurrent = type == "linear_attention";
  }
  return Status::ok();
}

} // namespace

Status read_hybrid_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  if (!fields.optional_bool("attn_output_gate").value_or(true)) {
    return Status::unsupported(
        origin +
        ": attn_output_gate: attention without gates is not supported "
        "for " +
        config.model_type);
  }
  config.qk_norm = QkNorm::kHead;
  config.has_attention_gates = true;
  config.qkv_bias = fields.optional_bool("attention_bias").value_or(false);
  config.output_bias = config.qkv_bias;
  INGLE_RETURN_IF_ERROR(
      read_activation(fields, origin, "hidden_act", Activation::kSilu, config));
  if (config.activation != Activation::kSilu) {
    return Status::unsupported(
        origin + ": hidden_act other than silu is not supported for " +
        config.model_type);
  }
  INGLE_RETURN_IF_ERROR(read_gated_delta(fields, origin, config.gated_delta));
  return read_layers(fields, origin, config.layers);
}

Status read_qwen3_5(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(read_hybrid_layers(fields, origin, config));
  if (fields.optional_count("num_experts", kMaxModelSize).value_or(0) == 0) {
    return fields.status();
  }
  for (LayerConfig& layer : config.layers) {
    layer.has_experts = true;
  }
  INGLE_RETURN_IF_ERROR(read_qwen_experts(fields, origin, true, config));
  return read_shared_expert(fields, origin, config);
}

} // namespace ingle
