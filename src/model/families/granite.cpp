#include "model/families/families.h"

namespace ingle {

Status read_granite(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  constexpr double kLow = 1e-6;
  constexpr double kHigh = 1e6;
  INGLE_RETURN_IF_ERROR(read_llama_layers(fields, origin, config));
  config.embedding_scale = fields.number("embedding_multiplier", kLow, kHigh);
  config.attention_scale = fields.number("attention_multiplier", kLow, kHigh);
  config.residual_scale = fields.number("residual_multiplier", kLow, kHigh);
  config.logits_scale = 1 / fields.number("logits_scaling", kLow, kHigh);
  config.wide_modules = {"self_attn.o_proj", "mlp.down_proj", "lm_head"};
  return Status::ok();
}

} // namespace ingle
