#include <cmath>

#include "model/families/families.h"

namespace ingle {

// All layers see all positions, as mlx-lm has it.
Status read_gemma2(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  constexpr double kLow = 1e-6;
  constexpr double kHigh = 1e6;
  const auto number = [&](const char* key, float usual) {
    return fields.optional_number(key, kLow, kHigh).value_or(usual);
  };
  config.head_dim = fields.size("head_dim");
  config.tie_word_embeddings = true; // whatever the file says
  config.norms = {
      "input_layernorm",
      "post_attention_layernorm",
      "pre_feedforward_layernorm",
      "post_feedforward_layernorm"};
  config.norms_add_one = true;
  config.embedding_scale = gemma_embedding_scale(config.hidden_size);
  config.attention_scale = 1 / std::sqrt(number("query_pre_attn_scalar", 144));
  // null: none.
  const auto cap = [&](const char* key, float usual) {
    return fields.is_null(key) ? 0 : number(key, usual);
  };
  config.attention_soft_cap = cap("attn_logit_softcapping", 50);
  config.logits_soft_cap = cap("final_logit_softcapping", 30);
  return read_activation(
      fields, origin, "hidden_activation", Activation::kGeluTanh, config);
}

} // namespace ingle
