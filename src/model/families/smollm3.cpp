#include "model/families/families.h"

namespace ingle {
namespace {

// A list with 1 for a layer that rotates and 0 for one that doesn't, whatever
// its name says; without it, every `interval`-th layer doesn't.
Status read_layers_without_rope(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  const size_t layers = config.layers.size();
  const auto interval = static_cast<size_t>(
      fields.optional_size("no_rope_layer_interval").value_or(4));
  const auto set_rotates = [&](size_t layer, bool rotates) {
    config.layers[layer].rope =
        rotates ? std::optional<size_t>(0) : std::nullopt;
  };
  for (size_t i = 0; i < layers; ++i) {
    set_rotates(i, (i + 1) % interval != 0);
  }
  const nlohmann::json* list = fields.find("no_rope_layers");
  if (list == nullptr) {
    return Status::ok();
  }
  if (!list->is_array() || list->size() != layers) {
    return Status::corruption(
        origin + ": no_rope_layers has to be a list of " +
        std::to_string(layers) + " numbers, one for each layer");
  }
  for (size_t i = 0; i < layers; ++i) {
    const nlohmann::json& rotates = (*list)[i];
    if (rotates != 0 && rotates != 1) {
      return Status::corruption(
          origin + ": no_rope_layers[" + std::to_string(i) +
          "] has to be 0 or 1");
    }
    set_rotates(i, rotates == 1);
  }
  return Status::ok();
}

} // namespace

Status read_smollm3(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(read_llama_layers(fields, origin, config));
  return read_layers_without_rope(fields, origin, config);
}

} // namespace ingle
