#include <cmath>

#include "model/families/families.h"

namespace ingle {
namespace {

Status read_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_ASSIGN_OR_RETURN(
      const RopeConfig local,
      read_rope(
          fields,
          origin,
          config.max_position_embeddings,
          {},
          {.layers = "sliding_attention",
           .theta = "rope_local_base_freq",
           .takes_common = false}));
  INGLE_ASSIGN_OR_RETURN(
      auto windowed, read_windowed_layers(fields, origin, config));
  const auto pattern = static_cast<size_t>(
      fields.optional_size("sliding_window_pattern").value_or(6));
  if (!windowed) {
    windowed.emplace();
    for (size_t i = 0; i < config.layers.size(); ++i) {
      windowed->push_back((i + 1) % pattern != 0);
    }
  }
  const int window = fields.optional_size("sliding_window").value_or(512);
  set_windows(*windowed, window, local, config);
  return fields.status();
}

} // namespace

// Some layers, every `sliding_window_pattern`-th if the file names none, see
// all positions, the others a window, with a rope of their own.
Status read_gemma3(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  constexpr double kLow = 1e-6;
  constexpr double kHigh = 1e12;
  INGLE_RETURN_IF_ERROR(read_gemma_layers(fields, origin, config));
  if (fields.optional_bool("use_bidirectional_attention").value_or(false)) {
    return Status::unsupported(
        origin + ": use_bidirectional_attention is not supported for " +
        config.model_type);
  }
  config.qk_norm = QkNorm::kHead;
  config.tie_word_embeddings = std::nullopt; // as the weights have it
  const float scalar =
      fields.optional_number("query_pre_attn_scalar", kLow, kHigh)
          .value_or(256);
  config.attention_scale = 1 / std::sqrt(scalar);
  const auto cap = [&](const char* key) {
    return fields.optional_number(key, kLow, kHigh).value_or(0);
  };
  config.attention_soft_cap = cap("attn_logit_softcapping");
  config.logits_soft_cap = cap("final_logit_softcapping");
  return read_layers(fields, origin, config);
}

} // namespace ingle
