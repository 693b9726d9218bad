// A loaded model whose speed is measured, test by test.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "cache/prompt_cache.h"
#include "cli/bench_plan.h"
#include "engine/scheduler.h"
#include "engine/served_model.h"
#include "model/model.h"
#include "model/run_options.h"

namespace ingle {

// What the repeats of one test came to.
struct Measurement {
  BenchTest test;
  // Tokens per second, of all rows together; one for each repeat.
  std::vector<double> rates;
  // Of a decode test: the share of its steps' time that is not evaluation of
  // the model, and the sampler's part of it.
  double overhead_percent = 0;
  double sampler_percent = 0;
};

// Runs the engine's own scheduler, so that a step holds all that a step of the
// server does: evaluation and what is around it, sampling, text. It has no
// limit of the context: sizes may go past the model's own.
//
// Threads: one, which loads, runs and destroys it.
class BenchSession {
 public:
  using OnProgress = std::function<void(uint64_t done, uint64_t total)>;

  // `clock` outlives the session. `stop` also ends measure().
  // Errors: as load_model() and load_served_model().
  static Result<BenchSession> load(
      FileSystem& fs,
      const Clock& clock,
      const std::string& folder,
      const RunOptions& options,
      std::stop_token stop,
      const OnProgress& on_progress);

  // One warm-up, then `repeat` runs. `on_progress` counts tokens.
  // Errors: those of a step; kCancelled soon after a stop.
  Result<Measurement>
  measure(const BenchTest& test, int repeat, const OnProgress& on_progress);

 private:
  class Run;

  BenchSession(
      std::unique_ptr<const Model> model,
      std::shared_ptr<const ServedModel> served,
      const Clock& clock,
      std::stop_token stop)
      : model_(std::move(model)),
        served_(std::move(served)),
        clock_(clock),
        stop_(std::move(stop)) {}

  std::unique_ptr<const Model> model_;
  std::shared_ptr<const ServedModel> served_;
  const Clock& clock_;
  std::stop_token stop_;
  // What has read the first tokens of the text that every test reads; kept
  // from test to test, because reading deep takes long.
  std::unique_ptr<PromptCache> cache_ =
      std::make_unique<PromptCache>(std::numeric_limits<size_t>::max());
};

} // namespace ingle
