#include "cache/plan_reuse.h"

#include <algorithm>

namespace ingle {
namespace {

int64_t shared_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
      a.begin();
}

// The last position up to `limit` from which the source can go on; 0: none.
int64_t resume_point(const ReuseSource& source, int64_t limit) {
  const int64_t most = std::min(limit, source.held);
  if (most >= source.first_resume_point) {
    return most;
  }
  const auto after = std::upper_bound(
      source.checkpoints.begin(), source.checkpoints.end(), most);
  return after == source.checkpoints.begin() ? 0 : *std::prev(after);
}

} // namespace

ReusePlan plan_reuse(
    std::span<const TokenId> prompt,
    std::span<const ReuseSource> sources) {
  ReusePlan plan;
  ReusePlan waiting;
  waiting.waits = true;
  const auto most = static_cast<int64_t>(prompt.size()) - 1;
  for (size_t i = 0; i < sources.size(); ++i) {
    const ReuseSource& source = sources[i];
    const int64_t shared = shared_length(prompt, source.tokens);
    const int64_t limit = std::min(shared, most);
    const int64_t length = resume_point(source, limit);
    const bool moves = source.is_idle && length == std::ssize(source.tokens);
    plan.shared = std::max(plan.shared, shared);
    if (length > plan.length ||
        (length == plan.length && moves && !plan.moves)) {
      plan.source = i;
      plan.length = length;
      plan.moves = moves;
    }
    if (limit > source.held && limit > waiting.length) {
      waiting.source = i;
      waiting.length = limit;
    }
  }
  waiting.shared = plan.shared;
  return waiting.length >= plan.length + kWorthWaiting ? waiting : plan;
}

} // namespace ingle
