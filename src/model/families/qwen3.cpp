#include "model/families/families.h"

namespace ingle {

Status read_qwen3(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  config.head_dim = fields.size("head_dim"); // hidden / heads is another
  config.qk_norm = QkNorm::kHead;
  return read_qwen_layers(fields, origin, config);
}

} // namespace ingle
