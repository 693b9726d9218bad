#include "model/families/families.h"

namespace ingle {

// All layers see all positions, and the gelu is the precise one, as mlx-lm has
// it, whatever the file says.
Status read_starcoder2(
    FieldReader& fields,
    const std::string& /*origin*/,
    ModelConfig& config) {
  const bool bias = fields.optional_bool("use_bias").value_or(true);
  config.qkv_bias = bias;
  config.output_bias = bias;
  config.mlp_bias = bias;
  config.layer_norms = true;
  config.mlp = MlpKind::kPlain;
  config.activation = Activation::kGelu;
  return fields.status();
}

} // namespace ingle
