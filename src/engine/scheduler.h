// One continuous batch of ragged rows: every generation is a row.
//
// A step forwards at most one piece of a prompt and one token of every row that
// decodes, all of them together. Rows keep their own caches from
// admission to their end; joining and leaving are list operations.
//
// A generation is queued, first in, first out, until a row is free and its KV
// state fits; then it takes over what the prompt cache or another row has read
// of its prompt. Where a row is about to read what it could take over, it waits
// for that. What a row has read goes to the prompt cache when it ends, whether
// well, cancelled or failed.
//
// What fails together: a failed forward fails the rows of that step. What fails
// alone: a row's sampler, its grammar, and its admission.
//
// Threads: the engine thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/stopwatch.h"
#include "cache/prompt_cache.h"
#include "engine/exclusive_work.h"
#include "engine/generator.h"
#include "engine/mask_worker.h"
#include "engine/piece_size.h"
#include "engine/sequence.h"
#include "model/model.h"

namespace ingle {

struct SchedulerOptions {
  int max_rows = 8; // generations that run at the same time
  int prefill_chunk = 512; // tokens of a prompt per step
  // Between two tokens of a row that decodes, while a prompt is read.
  std::chrono::milliseconds max_token_gap{100};
  // Bytes that the states of rows, as long as they may become, and the prompt
  // cache may take together; nothing: no limit. One row runs in any case. Of an
  // answer with an open end the first 1,024 tokens count, and then each 1,024
  // more when it comes to them.
  std::optional<uint64_t> kv_budget{};
  // Called after each change of the prompt cache, before a sink hears of what
  // changed it.
  std::function<void()> on_cache_change{};
};

// A generation to be queued.
struct Arrival {
  GenerationId id = 0; // higher than those before
  GenerationRequest request;
  uint64_t seed = 0;
  std::shared_ptr<GenerationSink> sink;
};

class Scheduler {
 public:
  // `model` and `cache` outlive it.
  Scheduler(
      const Model& model,
      std::shared_ptr<const ServedModel> served,
      SchedulerOptions options,
      const Clock& clock,
      PromptCache& cache);

  // Queues a generation, first in, first out.
  void add(Arrival arrival);
  // Queues it, too: what was queued before it ends first, what comes later
  // waits until it has run.
  void add(ExclusiveWork work);
  // Ends a queued or running generation; unknown ids are ignored.
  void cancel(GenerationId id);
  void cancel_all();

  // True iff anything is queued or runs.
  bool is_busy() const {
    return !queue_.empty() || is_running();
  }
  // Admits what fits and runs one step. Does nothing when not busy.
  void step();

  // Where the prompt cache keeps what the request reads.
  std::string space_of(const GenerationRequest& request) const;

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

  // What a prompt can take over, and of whom: of an entry or a row, where it
  // need not wait; of a row or another that waits, where it has to.
  struct Reuse {
    ReusePlan plan;
    bool looked = false; // false: nothing was to be taken over
    PromptCache::EntryId entry = 0; // where `row` is null
    Sequence* row = nullptr;
  };

  // Admission: queue_ -> waiting_ -> rows_.
  void admit();
  void give_up_late_work();
  bool is_running() const {
    return !rows_.empty() || !waiting_.empty();
  }
  bool has_room_for(const Arrival& arrival) const;
  uint64_t bytes_for(int64_t positions) const;
  uint64_t claim_of(const Arrival& arrival) const;
  uint64_t claim_of(const Sequence& row) const;
  uint64_t claimed() const;
  void leave_to_cache(uint64_t claims);
  void start_waiting();
  Reuse find_reuse(size_t waiting) const;
  void start(Arrival arrival, const Reuse& reuse);
  std::unique_ptr<Sequence> make_row(Arrival arrival, const Reuse& reuse);
  ResumableKv take_over(const Reuse& reuse);

  void make_room();
  Status grow(Sequence& row);
  // The rows that take part in the next step.
  std::vector<Sequence*> choose_rows() const;
  void forward(std::vector<Sequence*> chosen);
  std::vector<Row> next_rows(std::vector<Sequence*>& chosen, int piece);
  void accept(
      const std::vector<Sequence*>& chosen,
      std::span<const Row> batch,
      const std::optional<mx::array>& logits);
  void fail(Sequence& sequence, const Status& status);
  void retire_finished();
  void leave(Sequence& sequence);
  void tell_cache_change() const;

  const Model& model_;
  const std::shared_ptr<const ServedModel> served_;
  const SchedulerOptions options_;
  const Clock& clock_;
  PromptCache& cache_;
  const KvState empty_; // what a state comes to take is asked of it
  const std::string kv_scheme_;

  MaskWorker masks_;
  std::deque<std::variant<Arrival, ExclusiveWork>> queue_;
  std::vector<Arrival> waiting_; // admitted, for a row to read what they share
  Rows rows_; // in order of arrival
  PieceSize piece_size_;
  Stopwatch evaluation_;
  Stopwatch sampling_;
};

} // namespace ingle
