#include "model/families/families.h"

namespace ingle {

// Norms stand after attention and MLP, on what they add.
Status read_olmo_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(read_llama_layers(fields, origin, config));
  config.qk_norm = QkNorm::kAllHeads;
  config.norms = {
      "", "post_attention_layernorm", "", "post_feedforward_layernorm"};
  return Status::ok();
}

Status read_olmo2(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  return read_olmo_layers(fields, origin, config);
}

} // namespace ingle
