#include "model/families/families.h"

namespace ingle {
namespace {

// Without layer_types, use_sliding_window gives the layers from
// max_window_layers on a window.
Status refuse_upper_windows(
    FieldReader& fields,
    const std::string& origin,
    const ModelConfig& config) {
  const bool uses_windows =
      fields.optional_bool("use_sliding_window").value_or(false) &&
      !fields.is_null("sliding_window") &&
      fields.find("layer_types") == nullptr;
  const int first =
      fields.optional_count("max_window_layers", kMaxModelSize).value_or(28);
  if (!uses_windows || first >= config.num_hidden_layers) {
    return fields.status();
  }
  return Status::unsupported(
      origin + ": use_sliding_window is not supported for " +
      config.model_type + " with max_window_layers (" + std::to_string(first) +
      ") below num_hidden_layers (" + std::to_string(config.num_hidden_layers) +
      ")");
}

} // namespace

Status read_qwen_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(refuse_upper_windows(fields, origin, config));
  return read_activation(
      fields, origin, "hidden_act", Activation::kSilu, config);
}

Status read_qwen2(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  config.qkv_bias = true;
  return read_qwen_layers(fields, origin, config);
}

} // namespace ingle
