// A config.json that tests change, and what is said of it then.
#pragma once

#include <nlohmann/json.hpp>

#include "model/config.h"

namespace ingle {

// Of a small llama.
inline nlohmann::json valid_config() {
  return {
      {"model_type", "llama"},
      {"hidden_size", 64},
      {"intermediate_size", 128},
      {"num_hidden_layers", 3},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"vocab_size", 288},
      {"max_position_embeddings", 512},
      {"rms_norm_eps", 1e-5}};
}

inline Status parse_failure(const nlohmann::json& json) {
  return parse_model_config(json.dump(), "m/config.json").status();
}

} // namespace ingle
