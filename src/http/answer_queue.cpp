#include "http/answer_queue.h"

#include <utility>

namespace ingle {

// wake_ is called under the lock, so that close() can promise that no call is
// under way; what it does (a post to the I/O threads) takes no lock of ours.
void AnswerQueue::on_delta(GenerationDelta delta) {
  const std::lock_guard lock(mutex_);
  if (!wake_) {
    return;
  }
  const bool was_empty = batch_.empty();
  batch_.deltas.push_back(std::move(delta));
  if (was_empty) {
    wake_();
  }
}

void AnswerQueue::on_end(GenerationEnd end) {
  const std::lock_guard lock(mutex_);
  if (!wake_) {
    return;
  }
  const bool was_empty = batch_.empty();
  batch_.end = std::move(end);
  if (was_empty) {
    wake_();
  }
}

AnswerQueue::Batch AnswerQueue::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(batch_, {});
}

void AnswerQueue::close() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  batch_ = {};
}

} // namespace ingle
