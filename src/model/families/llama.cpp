#include "model/families/families.h"

namespace ingle {

Status read_llama_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  const bool bias = fields.optional_bool("attention_bias").value_or(false);
  config.qkv_bias = bias;
  config.output_bias = bias;
  config.mlp_bias = fields.optional_bool("mlp_bias").value_or(false);
  return read_activation(
      fields, origin, "hidden_act", Activation::kSilu, config);
}

namespace {

// Which llama has no model type of its own.
bool is_minicpm5(const ModelConfig& config) {
  return config.hidden_size == 1536 && config.num_hidden_layers == 24 &&
      config.num_attention_heads == 16 && config.num_key_value_heads == 2 &&
      config.head_dim == 128 && config.vocab_size == 130560;
}

} // namespace

Status read_llama(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  if (is_minicpm5(config)) {
    config.tier = SupportTier::kTargeted;
  }
  INGLE_RETURN_IF_ERROR(read_llama_layers(fields, origin, config));
  return read_windows(fields, origin, config);
}

} // namespace ingle
