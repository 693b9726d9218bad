#include "model/linear_views.h"

#include "model/kernel_compute.h"

namespace ingle {

LinearView LinearViews::of(const Linear& linear) {
  LinearView view = linear_view(linear);
  if (runs_.empty() || !linear.number) {
    return view;
  }
  std::vector<LowRankRun>& adapters = adapters_.at(used_);
  adapters.clear();
  for (const AdapterRun& run : runs_) {
    const auto parts = run.adapters->of_linear(*linear.number);
    if (!parts.empty()) {
      adapters.push_back({run.first, run.tokens, parts});
    }
  }
  if (!adapters.empty()) {
    view.adapters = adapters;
    ++used_;
  }
  return view;
}

} // namespace ingle
