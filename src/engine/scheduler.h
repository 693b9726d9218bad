// One continuous batch of ragged rows: every generation is a row.
//
// A step forwards at most one piece of a prompt and one token of every row that
// decodes, all of them together. Rows keep their own caches from
// admission to their end; joining and leaving are list operations.
//
// What fails together: a failed forward fails the rows of that step. What fails
// alone: a row's sampler, and its admission.
//
// Threads: the engine thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/stopwatch.h"
#include "engine/generator.h"
#include "engine/sequence.h"
#include "model/model.h"

namespace ingle {

struct SchedulerOptions {
  int max_rows = 1; // generations that run at the same time
  int prefill_chunk = 512; // tokens of a prompt per step
};

// A generation to be queued. `kv` holds a prefix of the prompt, and was made
// by the same model; nothing: a cold start. A request for the prompt's
// log-probabilities starts cold in any case: they come from forwarding it.
struct Arrival {
  GenerationId id = 0;
  GenerationRequest request;
  uint64_t seed = 0;
  std::shared_ptr<GenerationSink> sink;
  std::optional<KvState> kv;
};

// What a generation leaves behind: a state that holds exactly `tokens`. It is
// given out after success and after cancel, not after a failure.
struct Departure {
  GenerationId id = 0;
  std::vector<TokenId> tokens;
  KvState kv;
};

class Scheduler {
 public:
  using OnDeparture = std::function<void(Departure)>;

  Scheduler(
      const Model& model,
      std::shared_ptr<const ServedModel> served,
      SchedulerOptions options,
      const Clock& clock,
      OnDeparture on_departure);

  // Queues a generation, first in, first out.
  // Errors: kInvalidRequest (kv holds the whole prompt or more; the sink is
  // not called).
  Status add(Arrival arrival);
  // Ends a queued or running generation; unknown ids are ignored.
  void cancel(GenerationId id);
  void cancel_all();

  // True iff a row is queued or runs.
  bool is_busy() const {
    return !queue_.empty() || !rows_.empty();
  }
  // Admits what fits and runs one step. Does nothing when not busy.
  void step();

  // How much of all steps so far the model took to compute, and processors and
  // samplers took to pick tokens.
  std::chrono::steady_clock::duration evaluation_time() const {
    return evaluation_.total();
  }
  std::chrono::steady_clock::duration sampling_time() const {
    return sampling_.total();
  }

 private:
  using Rows = std::vector<std::unique_ptr<Sequence>>;

  void admit();
  // The rows that take part in the next step.
  std::vector<Sequence*> choose_rows() const;
  void forward(const std::vector<Sequence*>& chosen);
  void fail(Sequence& sequence, const Status& status);
  void retire_finished();

  const Model& model_;
  const std::shared_ptr<const ServedModel> served_;
  const SchedulerOptions options_;
  const Clock& clock_;
  const OnDeparture on_departure_;

  std::deque<Arrival> queue_;
  Rows rows_; // in order of admission
  Stopwatch evaluation_;
  Stopwatch sampling_;
};

} // namespace ingle
