// The part of layer_weights.h that is about mixtures of experts.
#include <cmath>

#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "model/families/layer_weights.h"
#include "model/run_mlx.h"

namespace ingle {
namespace {

struct ExpertWeights {
  ExpertMatrices gate;
  ExpertMatrices up;
  ExpertMatrices down;
};

// In MXFP4 as gpt-oss was published: a gate's rows and those of what it
// multiplies take turns.
Result<ExpertWeights> take_expert_blocks(
    const ExpertsConfig& experts,
    int hidden,
    WeightSource& weights,
    const std::string& path) {
  const int count = experts.count;
  const int inner = experts.intermediate_size;
  const auto take_half = [&](int part) {
    return weights.take_expert_blocks(
        path + ".gate_up_proj", {part, 2}, count, inner, hidden);
  };
  INGLE_ASSIGN_OR_RETURN(auto gate, take_half(0));
  INGLE_ASSIGN_OR_RETURN(auto up, take_half(1));
  INGLE_ASSIGN_OR_RETURN(
      auto down,
      weights.take_expert_blocks(
          path + ".down_proj", {}, count, hidden, inner));
  return ExpertWeights{std::move(gate), std::move(up), std::move(down)};
}

// `path`: of the second half of a layer.
Result<ExpertWeights> take_experts(
    const ExpertsConfig& experts,
    int hidden,
    WeightSource& weights,
    const std::string& path) {
  const std::string stacked = path + "." + experts.stacked;
  if (weights.has(stacked + ".gate_up_proj_blocks")) {
    return take_expert_blocks(experts, hidden, weights, stacked);
  }
  const int inner = experts.intermediate_size;
  const ExpertModules modules{
      path, experts.stacked, experts.count, experts.has_biases};
  INGLE_ASSIGN_OR_RETURN(
      auto gate, weights.take_experts(modules, "gate_proj", inner, hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto up, weights.take_experts(modules, "up_proj", inner, hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto down, weights.take_experts(modules, "down_proj", hidden, inner));
  return ExpertWeights{std::move(gate), std::move(up), std::move(down)};
}

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
  const ExpertsConfig& experts = config.experts;
  const int hidden = config.hidden_size;
  const std::string path = layer + ".mlp";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(
          config, weights, layer + "." + config.norms.before_mlp, hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto router,
      weights.take_linear(
          path + "." + experts.router,
          hidden,
          experts.count,
          experts.has_biases));
  INGLE_ASSIGN_OR_RETURN(
      auto taken, take_experts(experts, hidden, weights, path));
  INGLE_ASSIGN_OR_RETURN(
      auto shared, take_shared_expert(config, weights, path));
  return MoeWeights{
      std::move(norm),
      std::move(router),
      std::move(taken.gate),
      std::move(taken.up),
      std::move(taken.down),
      experts.per_token,
      experts.renormalises,
      config.activation,
      std::move(shared)};
}

namespace {

// Before the router: its scale, for inputs of the length of `hidden` ones.
Result<mx::array>
take_router_norm(WeightSource& weights, const std::string& name, int hidden) {
  INGLE_ASSIGN_OR_RETURN(const auto scale, weights.take(name, {hidden}));
  return run_mlx("load", [&] {
    mx::array norm = mx::multiply(
        scale,
        mx::array(1 / std::sqrt(static_cast<float>(hidden)), scale.dtype()));
    mx::eval(norm);
    return norm;
  });
}

} // namespace

Result<MoeWeights> take_moe_beside_mlp(
    const ModelConfig& config,
    const LayerConfig& own,
    WeightSource& weights,
    const std::string& layer) {
  const ExpertsConfig& experts = config.experts;
  const int hidden = config.hidden_size;
  const auto take_own_norm = [&](const char* name) {
    return take_norm(config, weights, layer + "." + name, hidden);
  };
  INGLE_ASSIGN_OR_RETURN(
      auto norm, take_own_norm("pre_feedforward_layernorm_2"));
  INGLE_ASSIGN_OR_RETURN(
      auto router,
      weights.take_linear(
          layer + "." + experts.router, hidden, experts.count, false));
  INGLE_ASSIGN_OR_RETURN(
      auto router_norm,
      take_router_norm(weights, layer + ".router.scale", hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto scales,
      weights.take(layer + ".router.per_expert_scale", {experts.count}));
  INGLE_ASSIGN_OR_RETURN(
      auto taken, take_experts(experts, hidden, weights, layer));
  INGLE_ASSIGN_OR_RETURN(
      auto sum_norm, take_own_norm("post_feedforward_layernorm_2"));
  INGLE_ASSIGN_OR_RETURN(auto mlp, take_mlp(config, own, weights, layer));
  INGLE_ASSIGN_OR_RETURN(
      auto added_norm, take_own_norm("post_feedforward_layernorm"));
  return MoeWeights{
      .norm = std::move(norm),
      .router = std::move(router),
      .gate = std::move(taken.gate),
      .up = std::move(taken.up),
      .down = std::move(taken.down),
      .top_k = experts.per_token,
      .renormalises = experts.renormalises,
      .activation = config.activation,
      .router_norm = std::move(router_norm),
      .expert_scales = std::move(scales),
      .sum_norm = std::move(sum_norm),
      .beside = std::move(mlp),
      .residual = {std::move(added_norm), config.residual_scale}};
}

} // namespace ingle
