// Qwen 3 with mixtures of experts: the layers of qwen3, but in place of the MLP
// many of them, of which a router picks a few for each token. Some layers may
// have the MLP.
#include "model/families/families.h"

namespace ingle {

Status read_qwen_experts(
    FieldReader& fields,
    const std::string& origin,
    bool renormalises,
    ModelConfig& config) {
  config.wide_modules = {"mlp.gate"}; // a coarse router picks others
  INGLE_RETURN_IF_ERROR(read_experts(
      fields, origin, {"num_experts", "num_experts_per_tok"}, config.experts));
  config.experts.renormalises =
      fields.optional_bool("norm_topk_prob").value_or(renormalises);
  return fields.status();
}

Status read_shared_expert(
    FieldReader& fields,
    const std::string& /*origin*/,
    ModelConfig& config) {
  config.experts.shared_intermediate_size =
      fields.size("shared_expert_intermediate_size");
  config.wide_modules.emplace_back("shared_expert_gate");
  return fields.status();
}

Status read_sparse_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  std::vector<LayerConfig>& layers = config.layers;
  const auto step = static_cast<size_t>(
      fields.optional_size("decoder_sparse_step").value_or(1));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].has_experts = (i + 1) % step == 0;
  }
  const nlohmann::json* without = fields.find("mlp_only_layers");
  if (without == nullptr) {
    return Status::ok();
  }
  const Status bad = Status::corruption(
      origin + ": mlp_only_layers has to be a list of layers, from 0 to " +
      std::to_string(layers.size() - 1));
  if (!without->is_array()) {
    return bad;
  }
  for (const nlohmann::json& layer : *without) {
    if (!layer.is_number_unsigned() || layer.get<uint64_t>() >= layers.size()) {
      return bad;
    }
    layers[layer.get<size_t>()].has_experts = false;
  }
  return Status::ok();
}

Status read_qwen3_moe(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(read_qwen3(fields, origin, config));
  if (config.activation != Activation::kSilu) {
    return Status::unsupported(
        origin + ": hidden_act other than silu is not supported for " +
        config.model_type);
  }
  if (fields.optional_bool("attention_bias").value_or(false)) {
    return Status::unsupported(
        origin +
        ": attention_bias: attention with biases is not supported "
        "for " +
        config.model_type);
  }
  INGLE_RETURN_IF_ERROR(read_qwen_experts(fields, origin, false, config));
  return read_sparse_layers(fields, origin, config);
}

} // namespace ingle
