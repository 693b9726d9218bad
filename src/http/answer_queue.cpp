#include "http/answer_queue.h"

#include <utility>

namespace ingle {

class AnswerQueue::ChoiceSink final : public GenerationSink {
 public:
  ChoiceSink(std::shared_ptr<AnswerQueue> queue, size_t choice)
      : queue_(std::move(queue)), choice_(choice) {}

  void on_prefill(PrefillStep step) override {
    queue_->put({choice_, std::move(step)});
  }
  void on_delta(GenerationDelta delta) override {
    queue_->put({choice_, std::move(delta)});
  }
  void on_end(GenerationEnd end) override {
    queue_->put({choice_, std::move(end)});
  }

 private:
  const std::shared_ptr<AnswerQueue> queue_;
  const size_t choice_;
};

std::shared_ptr<GenerationSink> AnswerQueue::sink_of(size_t choice) {
  return std::make_shared<ChoiceSink>(shared_from_this(), choice);
}

// wake_ is called under the lock, so that close() can promise that no call is
// under way; what it does (a post to the I/O threads) takes no lock of ours.
void AnswerQueue::put(AnswerEvent event) {
  const std::lock_guard lock(mutex_);
  if (!wake_) {
    return;
  }
  events_.push_back(std::move(event));
  if (events_.size() == 1) {
    wake_();
  }
}

std::vector<AnswerEvent> AnswerQueue::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

void AnswerQueue::close() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  events_.clear();
}

} // namespace ingle
