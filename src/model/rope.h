// Rotary position embedding.
#pragma once

#include <optional>

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

 private:
  int dims_;
  bool traditional_;
  float theta_;
  float scale_ = 1; // of positions
  std::optional<mx::array> wavelengths_; // [dims / 2], over 2π; else from theta
};

} // namespace ingle
