#include "cache/resumable_kv.h"

#include <algorithm>

namespace ingle {

std::vector<int64_t> ResumableKv::checkpoint_positions() const {
  std::vector<int64_t> positions;
  positions.reserve(checkpoints_.size());
  for (const KvCheckpoint& checkpoint : checkpoints_) {
    positions.push_back(checkpoint.position);
  }
  return positions;
}

void ResumableKv::keep_checkpoint() {
  const int64_t position = state_.offset();
  if (!state_.forgets() || position == 0 ||
      (!checkpoints_.empty() && checkpoints_.back().position == position)) {
    return;
  }
  checkpoints_.push_back(state_.checkpoint());
  if (checkpoints_.size() > kMaxCheckpoints) {
    checkpoints_.erase(checkpoints_.begin() + 1);
  }
}

ResumableKv ResumableKv::fork(int64_t length) const {
  const auto end = std::find_if(
      checkpoints_.begin(), checkpoints_.end(), [&](const auto& checkpoint) {
        return checkpoint.position > length;
      });
  const bool is_at_checkpoint = end != checkpoints_.begin() &&
      std::prev(end)->position == length && !state_.can_trim_to(length);
  ResumableKv forked(
      is_at_checkpoint ? state_.restore(*std::prev(end))
                       : state_.snapshot(length).restore());
  forked.checkpoints_.assign(checkpoints_.begin(), end);
  return forked;
}

} // namespace ingle
