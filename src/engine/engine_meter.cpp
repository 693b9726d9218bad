#include "engine/engine_meter.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace ingle {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;

double seconds_between(TimePoint begin, TimePoint end) {
  return Seconds(end - begin).count();
}

uint64_t count_of(int tokens) {
  return static_cast<uint64_t>(std::max(tokens, 0));
}

// As the client is told it.
std::string code_of(const Status& status) {
  if (!status.reason().empty()) {
    return std::string(status.reason());
  }
  return status.code() == StatusCode::kInvalidRequest ? "invalid_request"
                                                      : "internal_error";
}

} // namespace

// One generation.
//
// Threads: the engine's, once it is made.
class EngineMeter::Watch final : public GenerationSink {
 public:
  Watch(EngineMeter& meter, std::shared_ptr<GenerationSink> sink)
      : meter_(meter), sink_(std::move(sink)), queued_(meter.clock_.now()) {
    MutexLock lock(meter_.mutex_);
    ++meter_.stats_.queued;
  }

  void on_prefill(PrefillStep step) override {
    {
      MutexLock lock(meter_.mutex_);
      EngineStats& stats = meter_.stats_;
      if (phase_ == &EngineStats::queued) {
        stats.cached_tokens += count_of(step.cached);
        read_ = step.cached;
        const double waited = seconds_between(queued_, meter_.clock_.now());
        stats.queue_wait.observe(
            std::max(waited - step.elapsed_ms / 1000, 0.0));
      }
      stats.prompt_tokens += count_of(step.processed - read_);
      read_ = step.processed;
      move_to(
          step.processed < step.total ? &EngineStats::prefilling
                                      : &EngineStats::decoding);
    }
    sink_->on_prefill(std::move(step));
  }

  void on_delta(GenerationDelta delta) override {
    if (!delta.tokens.empty()) {
      MutexLock lock(meter_.mutex_);
      const TimePoint now = meter_.clock_.now();
      count_generated(given_ + delta.tokens.size());
      if (last_token_) {
        meter_.stats_.between_tokens.observe(
            seconds_between(*last_token_, now));
      } else {
        meter_.stats_.first_token.observe(seconds_between(queued_, now));
      }
      last_token_ = now;
    }
    sink_->on_delta(std::move(delta));
  }

  void on_end(GenerationEnd end) override {
    {
      MutexLock lock(meter_.mutex_);
      EngineStats& stats = meter_.stats_;
      // A final end of sequence is in no delta.
      count_generated(count_of(end.stats.generated_tokens));
      --(stats.*phase_);
      stats.request.observe(seconds_between(queued_, meter_.clock_.now()));
      ++(end.status.is_ok() ? count_for(end.reason) : stats.finished.failed);
    }
    sink_->on_end(std::move(end));
  }

 private:
  using Phase = size_t EngineStats::*;

  void move_to(Phase phase) INGLE_REQUIRES(meter_.mutex_) {
    --(meter_.stats_.*phase_);
    phase_ = phase;
    ++(meter_.stats_.*phase_);
  }

  // So many in all, of this generation.
  void count_generated(uint64_t tokens) INGLE_REQUIRES(meter_.mutex_) {
    if (tokens > given_) {
      meter_.stats_.generated_tokens += tokens - given_;
      given_ = tokens;
    }
  }

  uint64_t& count_for(FinishReason reason) INGLE_REQUIRES(meter_.mutex_) {
    FinishCounts& finished = meter_.stats_.finished;
    switch (reason) {
      case FinishReason::kStop:
        return finished.stop;
      case FinishReason::kLength:
        return finished.length;
      case FinishReason::kToolCalls:
        return finished.tool_calls;
      case FinishReason::kCancelled:
        return finished.cancelled;
    }
    return finished.failed;
  }

  EngineMeter& meter_;
  const std::shared_ptr<GenerationSink> sink_;
  const TimePoint queued_;
  Phase phase_ = &EngineStats::queued;
  int read_ = 0; // of the prompt, what is cached included
  uint64_t given_ = 0; // generated
  std::optional<TimePoint> last_token_;
};

std::shared_ptr<GenerationSink> EngineMeter::watch(
    std::shared_ptr<GenerationSink> sink) {
  return std::make_shared<Watch>(*this, std::move(sink));
}

void EngineMeter::count_refusal(const Status& status) {
  MutexLock lock(mutex_);
  ++stats_.refused[code_of(status)];
}

void EngineMeter::count_step() {
  MutexLock lock(mutex_);
  ++stats_.steps;
}

void EngineMeter::set_kv_layers(std::map<std::string, int> layers) {
  MutexLock lock(mutex_);
  stats_.kv_layers = std::move(layers);
}

void EngineMeter::set_prompt_cache(const PromptCacheFigures& figures) {
  MutexLock lock(mutex_);
  stats_.prompt_cache = figures;
}

EngineStats EngineMeter::read() const {
  MutexLock lock(mutex_);
  return stats_;
}

} // namespace ingle
