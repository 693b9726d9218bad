// Carries a generation from the engine thread to the connection that waits for
// it.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/generator.h"

namespace ingle {

// Never blocks the engine: a put is a push under a lock that nobody holds for
// long. It holds what a slow client has not read, so at most one answer.
//
// Threads: any.
class AnswerQueue final : public GenerationSink {
 public:
  struct Batch {
    std::vector<GenerationDelta> deltas;
    std::optional<GenerationEnd> end; // then nothing follows

    bool empty() const {
      return deltas.empty() && !end;
    }
  };

  // `wake` is called, on the engine thread, when the queue stops being empty.
  explicit AnswerQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  void on_delta(GenerationDelta delta) override;
  void on_end(GenerationEnd end) override;

  // All there is.
  Batch take();
  // Nobody waits any more: `wake` is not called once this has returned, and
  // what still comes is dropped.
  void close();

 private:
  std::mutex mutex_;
  std::function<void()> wake_; // empty: closed
  Batch batch_;
};

} // namespace ingle
