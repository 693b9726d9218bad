// Carries the generations of an answer from the engine thread to the connection
// that waits for them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "engine/generator.h"

namespace ingle {

// What happened to one choice of the answer. After its end nothing follows.
struct AnswerEvent {
  size_t choice = 0;
  std::variant<PrefillStep, GenerationDelta, GenerationEnd> what;
};

// Never blocks the engine: a put is a push under a lock that nobody holds for
// long. It holds what a slow client has not read, so at most one answer.
//
// Threads: any.
class AnswerQueue : public std::enable_shared_from_this<AnswerQueue> {
 public:
  // `wake` is called, on the engine thread, when the queue stops being empty.
  explicit AnswerQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Where the generation of a choice puts what it gives; keeps the queue.
  // Requires: a shared_ptr owns the queue.
  std::shared_ptr<GenerationSink> sink_of(size_t choice);

  // All there is, in order of arrival.
  std::vector<AnswerEvent> take();
  // Nobody waits any more: `wake` is not called once this has returned, and
  // what still comes is dropped.
  void close();

 private:
  class ChoiceSink;

  void put(AnswerEvent event);

  std::mutex mutex_;
  std::function<void()> wake_; // empty: closed
  std::vector<AnswerEvent> events_;
};

} // namespace ingle
