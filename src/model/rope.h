// Rotary position embedding.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <mlx/array.h>

#include "model/config.h"

namespace ingle {

namespace mx = mlx::core;

// Threads: the engine thread.
class Rope {
 public:
  Rope(const RopeConfig& config, int dims);

  // x: [1, heads, L, dims] whose first row stands at position `offset`.
  mx::array operator()(const mx::array& x, int64_t offset) const;

  int dims() const {
    return dims_;
  }
  bool is_traditional() const {
    return traditional_;
  }
  // Appends the cosines and sines of the dims / 2 angles at a position.
  void add_angles(
      int64_t position,
      std::vector<float>& cosines,
      std::vector<float>& sines) const;

 private:
  int dims_;
  bool traditional_;
  float theta_;
  float scale_ = 1; // of positions
  std::optional<mx::array> wavelengths_; // [dims / 2], over 2π; else from theta
  std::vector<float> frequencies_; // [dims / 2], in radians per position
};

} // namespace ingle
