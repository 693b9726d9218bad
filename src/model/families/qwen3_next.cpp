// Qwen 3 Next: the layers of Qwen 3.5, whose second half may be a mixture of
// experts in each; the projections of gated delta nets stand in files
// otherwise.
#include "model/families/families.h"

namespace ingle {

Status read_qwen3_next(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(read_hybrid_layers(fields, origin, config));
  config.fused_gated_delta = true;
  INGLE_RETURN_IF_ERROR(read_qwen_experts(fields, origin, false, config));
  INGLE_RETURN_IF_ERROR(read_shared_expert(fields, origin, config));
  return read_sparse_layers(fields, origin, config);
}

} // namespace ingle
