// The engine thread: it loads the model, owns every mx::array and runs the
// scheduler.
//
// submit(), cancel() and run_exclusively() lead in, through one mailbox; the
// sinks lead out. The engine waits for nothing but its mailbox and, in a step,
// what computes beside it: the pool's threads and the masks of grammars.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/adapter_registry.h"
#include "engine/default_seeds.h"
#include "engine/engine_meter.h"
#include "engine/exclusive_work.h"
#include "engine/generator.h"
#include "model/run_options.h"

namespace ingle {

struct EngineOptions {
  std::string model_folder;
  std::string model_name; // as clients see it; empty: the folder's
  RunOptions run;
  GenerationDefaults defaults; // stand over generation_config.json
  AdapterOptions adapters;
  // Told of the bytes of weights that are loaded, on the engine thread.
  std::function<void(uint64_t done, uint64_t total)> on_load_progress;
  int prefill_chunk = 512; // tokens
  int max_rows = 8; // generations that run at the same time
  std::chrono::milliseconds max_token_gap{100}; // see SchedulerOptions
  size_t prompt_cache_bytes = 0; // of memory, for what sequences have read
  // Bytes that the process may take, by MemoryPlan; nothing: as many as there
  // are. A model that takes them all before its first token isn't loaded.
  std::optional<uint64_t> usable_memory;
  size_t queue_limit = 256; // generations that wait or run
};

// Threads: any, but for stop() and destruction, which are the owner's.
class Engine final : public Generator {
 public:
  // Returns at once and loads in the background.
  // Lifetime: `fs` and `clock` outlive the engine.
  Engine(EngineOptions options, FileSystem& fs, const Clock& clock);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Blocks until the model can answer. Errors: what kept it from loading;
  // kCancelled after stop().
  Status wait_until_loaded();

  // Asks the thread to end: every generation is cancelled (each sink gets its
  // end), a load that is under way is given up. Threads: any.
  void request_stop();
  // request_stop(), and waits for the thread.
  void stop();

  std::shared_ptr<const ServedModel> model() const override;
  Result<GenerationId> submit(
      GenerationRequest request,
      std::shared_ptr<GenerationSink> sink) override;
  void cancel(GenerationId id) override;
  EngineStats stats() const override;

  // Runs `work` on the engine's thread while nothing else does: generations
  // that were queued before it end first, those that come later wait. Blocks
  // until it is over; not to be called from a sink. Errors: kOverloaded (reason
  // "engine_busy": it was not its turn within `max_wait`, or until the engine
  // stopped, and was not run); those of submit().
  Status run_exclusively(
      std::function<void()> work,
      std::chrono::milliseconds max_wait);
  // True iff a generation is queued or runs, or exclusive work waits or runs.
  bool is_busy() const;
  // Blocks until it is not busy.
  void wait_until_idle();

 private:
  class Runner;

  struct Submission {
    GenerationId id = 0;
    GenerationRequest request;
    uint64_t seed = 0;
    std::shared_ptr<GenerationSink> sink;
  };
  // What arrived since the engine thread looked last.
  struct Mail {
    std::vector<std::variant<Submission, ExclusiveWork>> submissions;
    std::vector<GenerationId> cancellations;
    bool stop = false;
  };

  void run(const std::stop_token& stop);
  Result<GenerationId> queue(
      GenerationRequest request,
      std::shared_ptr<GenerationSink> sink);
  Mail wait_for_mail(bool block);
  void end_one();
  Status check_serving() const INGLE_REQUIRES(mutex_);

  const EngineOptions options_;
  FileSystem& fs_;
  const Clock& clock_;
  EngineMeter meter_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  Mail mail_ INGLE_GUARDED_BY(mutex_);
  // Loading is over, well or not: see load_status_.
  bool loaded_ INGLE_GUARDED_BY(mutex_) = false;
  bool stopping_ INGLE_GUARDED_BY(mutex_) = false;
  Status load_status_ INGLE_GUARDED_BY(mutex_);
  std::shared_ptr<const ServedModel> model_ INGLE_GUARDED_BY(mutex_);
  GenerationId last_id_ INGLE_GUARDED_BY(mutex_) = 0;
  DefaultSeeds default_seeds_ INGLE_GUARDED_BY(mutex_);
  // Generations that wait or run: what the queue's limit is about.
  size_t open_ INGLE_GUARDED_BY(mutex_) = 0;
  // Those, until their sinks have heard of the end, and exclusive work.
  size_t busy_ INGLE_GUARDED_BY(mutex_) = 0;

  std::jthread thread_; // last: it uses all of the above
};

} // namespace ingle
