// Counts and times what goes through the engine, by standing in front of the
// sinks: what clients are told is what is counted.
//
// Threads: any.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/engine_stats.h"
#include "engine/generator.h"

namespace ingle {

class EngineMeter {
 public:
  // `settings`: the fields that don't change. `clock` outlives it.
  EngineMeter(EngineStats settings, const Clock& clock)
      : clock_(clock), stats_(std::move(settings)) {}

  // A sink that counts and hands on to `sink`, for a generation that is queued
  // from now on. What it counts is in read() before `sink` hears of it.
  // Lifetime: this outlives what is returned.
  std::shared_ptr<GenerationSink> watch(std::shared_ptr<GenerationSink> sink);

  // A generation was not queued.
  void count_refusal(const Status& status);
  void count_step();
  void set_kv_layers(std::map<std::string, int> layers);
  // After what has changed it, and before anybody is told.
  void set_prompt_cache(const PromptCacheFigures& figures);

  EngineStats read() const;

 private:
  class Watch;

  const Clock& clock_;
  mutable Mutex mutex_;
  EngineStats stats_ INGLE_GUARDED_BY(mutex_);
};

} // namespace ingle
