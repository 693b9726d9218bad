// Rotary position embedding.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <mlx/array.h>

#include "model/rope_config.h"

namespace ingle {

namespace mx = mlx::core;

// Threads: the engine thread.
class Rope {
 public:
  // Requires: check_rope(config, head_dim) is ok.
  Rope(const RopeConfig& config, int head_dim);

  // x: [1, heads, L, head_dim] whose first row stands at position `offset`.
  mx::array operator()(const mx::array& x, int64_t offset) const;

  // Of a head, the first ones: they turn, the others stay as they are.
  int dims() const {
    return dims_;
  }
  bool is_traditional() const {
    return traditional_;
  }
  // What turned queries at a position are multiplied by.
  float query_scale(int64_t position) const;
  // It is not 1 everywhere.
  bool scales_queries() const {
    return query_beta_ != 0;
  }
  // Appends the cosines and sines of the dims / 2 angles at a position, times
  // what the turned are multiplied by.
  void add_angles(
      int64_t position,
      std::vector<float>& cosines,
      std::vector<float>& sines) const;

 private:
  int dims_;
  bool traditional_;
  float theta_;
  float scale_; // of positions
  float amplitude_;
  float query_beta_;
  int query_context_; // positions
  std::optional<mx::array> amplitudes_; // [head_dim], where they are not all 1
  std::optional<mx::array> wavelengths_; // [dims / 2], over 2π; else from theta
  std::vector<float> frequencies_; // [dims / 2], in radians per position
};

} // namespace ingle
