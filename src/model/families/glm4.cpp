#include "model/families/families.h"

namespace ingle {

// The embedding is never the head.
Status
read_glm4(FieldReader& fields, const std::string& origin, ModelConfig& config) {
  config.tie_word_embeddings = false;
  config.qkv_bias = fields.optional_bool("attention_bias").value_or(true);
  config.mlp = MlpKind::kFusedGated;
  config.norms = {
      "input_layernorm",
      "post_self_attn_layernorm",
      "post_attention_layernorm",
      "post_mlp_layernorm"};
  return read_activation(
      fields, origin, "hidden_act", Activation::kSilu, config);
}

} // namespace ingle
