#include "model/families/families.h"

namespace ingle {

Status read_qwen3(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  config.head_dim = fields.size("head_dim"); // hidden / heads is another
  config.qk_norm = QkNorm::kHead;
  INGLE_RETURN_IF_ERROR(refuse_windows(fields, origin, config));
  return read_activation(
      fields, origin, "hidden_act", Activation::kSilu, config);
}

} // namespace ingle
