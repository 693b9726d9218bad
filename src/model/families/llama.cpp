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

Status read_llama(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(read_llama_layers(fields, origin, config));
  return read_windows(fields, origin, config);
}

} // namespace ingle
