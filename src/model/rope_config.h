// What a model's file says of its rotary position embeddings.
#pragma once

#include <vector>

namespace ingle {

enum class RopeKind {
  kDefault,
  kLinear,
  kLlama3,
  kYarn,
  kLongRope,
  kProportional,
};

struct RopeConfig {
  RopeKind kind = RopeKind::kDefault;
  float theta = 10000;
  bool traditional = false; // pairs (2i, 2i+1) instead of (i, i + dims/2)
  // The share of a head that turns. With kProportional its pairs are spread
  // over the whole head, and the others stand still.
  float rotary_factor = 1;
  float factor = 1; // kLinear, kLlama3, kYarn, kProportional
  float low_freq_factor = 1; // kLlama3
  float high_freq_factor = 4; // kLlama3
  int original_context = 8192; // kLlama3, kYarn, kLongRope, query_beta; tokens
  float beta_fast = 32; // kYarn: turns in the original context
  float beta_slow = 1;
  bool truncate = true; // kYarn: its range of dimensions, to whole ones
  std::vector<float> long_factors; // kLongRope: one for each pair
  float amplitude = 1; // what turns is multiplied by
  // Queries at position p are multiplied by
  // 1 + query_beta * ln(1 + floor(p / original_context)).
  float query_beta = 0;

  bool operator==(const RopeConfig&) const = default;

  int rotated_dims(int head_dim) const {
    return static_cast<int>(static_cast<float>(head_dim) * rotary_factor);
  }
};

} // namespace ingle
