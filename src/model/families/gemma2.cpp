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
  INGLE_RETURN_IF_ERROR(read_gemma_layers(fields, origin, config));
  config.tie_word_embeddings = true; // whatever the file says
  config.attention_scale = 1 / std::sqrt(number("query_pre_attn_scalar", 144));
  // null: none.
  const auto cap = [&](const char* key, float usual) {
    return fields.is_null(key) ? 0 : number(key, usual);
  };
  config.attention_soft_cap = cap("attn_logit_softcapping", 50);
  config.logits_soft_cap = cap("final_logit_softcapping", 30);
  return Status::ok();
}

} // namespace ingle
