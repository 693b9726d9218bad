#include "model/families/families.h"

namespace ingle {

Status read_qwen2(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  config.qkv_bias = true;
  INGLE_RETURN_IF_ERROR(refuse_windows(fields, origin, config));
  return read_activation(
      fields, origin, "hidden_act", Activation::kSilu, config);
}

} // namespace ingle
