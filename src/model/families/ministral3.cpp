#include "model/families/families.h"

namespace ingle {

// Queries far on are larger: llama_4_scaling_beta stands with the rope.
Status read_ministral3(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  if (fields.find("rope_parameters") == nullptr) {
    return Status::corruption(
        origin +
        ": the field 'rope_parameters' is missing (an object is expected)");
  }
  INGLE_RETURN_IF_ERROR(
      read_activation(fields, origin, "hidden_act", Activation::kSilu, config));
  return read_windows(fields, origin, config);
}

} // namespace ingle
