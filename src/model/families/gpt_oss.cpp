// gpt-oss: attention with sinks, in every other layer over a window, and
// mixtures of experts with biases, whose gates are clamped.
#include <cmath>

#include "model/families/families.h"

namespace ingle {
namespace {

// Softmax over the logits of the chosen experts is renormalised weights.
Status read_mixture(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  ExpertsConfig& experts = config.experts;
  INGLE_RETURN_IF_ERROR(read_experts(
      fields,
      origin,
      {"num_local_experts", "num_experts_per_tok", "intermediate_size"},
      experts));
  config.intermediate_size = 0; // no layer has an MLP
  experts.renormalises = true;
  experts.has_biases = true;
  experts.router = "router";
  experts.stacked = "experts";
  for (LayerConfig& layer : config.layers) {
    layer.has_experts = true;
  }
  config.wide_modules = {"mlp.router"}; // a coarse one picks others
  return Status::ok();
}

Status read_gates(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  constexpr double kHigh = 1e6;
  INGLE_RETURN_IF_ERROR(
      read_activation(fields, origin, "hidden_act", Activation::kSilu, config));
  if (config.activation != Activation::kSilu) {
    return Status::unsupported(
        origin + ": hidden_act other than silu is not supported for " +
        config.model_type);
  }
  const float limit = fields.optional_number("swiglu_limit", -kHigh, kHigh)
                          .value_or(kSwigluLimit);
  INGLE_RETURN_IF_ERROR(fields.status());
  if (limit != kSwigluLimit) {
    return Status::unsupported(
        origin + ": swiglu_limit other than " +
        std::to_string(std::lround(kSwigluLimit)) + " is not supported");
  }
  config.activation = Activation::kClampedSwiglu;
  return Status::ok();
}

// Every other layer from the first on, if the file names none.
Status read_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_ASSIGN_OR_RETURN(
      auto windowed, read_windowed_layers(fields, origin, config));
  if (!windowed) {
    windowed.emplace();
    for (size_t i = 0; i < config.layers.size(); ++i) {
      windowed->push_back(i % 2 == 0);
    }
  }
  set_windows(
      *windowed, fields.size("sliding_window"), config.ropes.front(), config);
  return fields.status();
}

} // namespace

Status read_gpt_oss(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  if (!fields.optional_bool("attention_bias").value_or(true)) {
    return Status::unsupported(
        origin +
        ": attention_bias: attention without biases is not supported for " +
        config.model_type);
  }
  config.qkv_bias = true;
  config.output_bias = true;
  config.has_sinks = true;
  INGLE_RETURN_IF_ERROR(read_gates(fields, origin, config));
  INGLE_RETURN_IF_ERROR(read_layers(fields, origin, config));
  return read_mixture(fields, origin, config);
}

} // namespace ingle
