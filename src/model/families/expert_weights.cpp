// The part of layer_weights.h that is about mixtures of experts.
#include "model/families/layer_weights.h"

namespace ingle {

namespace {

Result<std::optional<SharedExpert>> take_shared_expert(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  const int hidden = config.hidden_size;
  const int inner = config.experts.shared_intermediate_size;
  if (inner == 0) {
    return std::optional<SharedExpert>();
  }
  const std::string own = path + ".shared_expert.";
  INGLE_ASSIGN_OR_RETURN(
      auto share,
      weights.take_linear(path + ".shared_expert_gate", hidden, 1, false));
  INGLE_ASSIGN_OR_RETURN(
      auto gate, weights.take_linear(own + "gate_proj", hidden, inner, false));
  INGLE_ASSIGN_OR_RETURN(
      auto up, weights.take_linear(own + "up_proj", hidden, inner, false));
  INGLE_ASSIGN_OR_RETURN(
      auto down, weights.take_linear(own + "down_proj", inner, hidden, false));
  return std::optional(SharedExpert{
      std::move(share), std::move(gate), std::move(up), std::move(down)});
}

} // namespace

Result<MoeWeights> take_moe(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const int count = config.experts.count;
  const int inner = config.experts.intermediate_size;
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
  INGLE_ASSIGN_OR_RETURN(
      auto shared, take_shared_expert(config, weights, path));
  return MoeWeights{
      std::move(norm),
      std::move(router),
      std::move(gate),
      std::move(up),
      std::move(down),
      config.experts.per_token,
      config.experts.renormalises,
      Activation::kSilu,
      std::move(shared)};
}

} // namespace ingle
