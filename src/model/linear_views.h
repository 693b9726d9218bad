// What the kernels see of linears in one step, with what its rows' adapters
// add.
//
// Owns:    the runs that the views point to, until the next restart().
// Threads: the engine thread.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/layer.h"
#include "model/linear.h"
#include "model/ops.h"

namespace ingle {

class LinearViews {
 public:
  // `runs`: of the step that the views are for.
  explicit LinearViews(std::span<const AdapterRun> runs)
      : runs_(runs.begin(), runs.end()) {}

  LinearView of(const Linear& linear);
  LinearView of(const std::optional<Linear>& linear) {
    return linear ? of(*linear) : LinearView{};
  }
  // What was given before is no longer used.
  void restart() {
    used_ = 0;
  }

 private:
  // Of two blocks that are run as one.
  static constexpr size_t kMostLinears = 8;

  std::vector<AdapterRun> runs_;
  std::array<std::vector<LowRankRun>, kMostLinears> adapters_;
  size_t used_ = 0; // of those
};

} // namespace ingle
