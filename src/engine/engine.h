// The engine thread: it loads the model, owns every mx::array and runs the
// scheduler.
//
// Two ways lead in, submit() and cancel(), through one mailbox; one leads out,
// the sinks. The engine never blocks on anything but its mailbox.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "engine/generator.h"
#include "model/numerics.h"

namespace ingle {

struct EngineOptions {
  std::string model_folder;
  Numerics numerics = Numerics::kExact;
  int prefill_chunk = 512; // tokens
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
    std::vector<Submission> submissions;
    std::vector<GenerationId> cancellations;
    bool stop = false;
  };

  void run(const std::stop_token& stop);
  Mail wait_for_mail(bool block);
  uint64_t next_default_seed(); // requires mutex_

  const EngineOptions options_;
  FileSystem& fs_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Below: guarded by mutex_.
  Mail mail_;
  bool loaded_ = false; // or failed to, see load_status_
  bool stopping_ = false;
  Status load_status_;
  std::shared_ptr<const ServedModel> model_;
  GenerationId last_id_ = 0;
  uint32_t seed_counter_ = 0;
  size_t open_ = 0; // generations that wait or run

  std::jthread thread_; // last: it uses all of the above
};

} // namespace ingle
