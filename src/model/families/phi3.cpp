#include "model/families/families.h"

namespace ingle {
namespace {

// Its authors' files have all of it or none.
Status check_scaling(FieldReader& fields, const std::string& origin) {
  const nlohmann::json* scaling = fields.find("rope_scaling");
  if (scaling == nullptr) {
    return Status::ok();
  }
  const FieldReader reader(*scaling, origin);
  const bool has_type = reader.find("type") || reader.find("rope_type");
  if (!has_type || reader.find("long_factor") == nullptr) {
    return Status::corruption(
        origin + ": rope_scaling has to have a type and a long_factor");
  }
  return Status::ok();
}

} // namespace

// All layers see all positions, as mlx-lm has it.
Status
read_phi3(FieldReader& fields, const std::string& origin, ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(check_scaling(fields, origin));
  config.fused_qkv = true;
  config.mlp = MlpKind::kFusedGated;
  return read_activation(
      fields, origin, "hidden_act", Activation::kSilu, config);
}

} // namespace ingle
