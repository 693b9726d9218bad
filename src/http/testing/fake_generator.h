// An engine that says what a test tells it to; for tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/generator.h"

namespace ingle {

// What every generation does from then on.
struct FakeScript {
  static constexpr size_t kNever = std::numeric_limits<size_t>::max();

  std::vector<PrefillStep> prefill; // first
  std::vector<std::string> pieces = {"Par", "is"};
  // After so many pieces it waits for release(), or to be cancelled.
  size_t hold_after = kNever;
  GenerationEnd end;
  bool ignores_cancel = false;
  std::optional<Status> refusal; // submit() fails
  bool throws = false; // submit() throws, which nothing of ours should
};

// Each generation runs on a thread of its own, as the engine's would.
class FakeGenerator final : public Generator {
 public:
  FakeGenerator();
  ~FakeGenerator() override; // releases, and joins

  void set_script(FakeScript script);
  void set_stats(EngineStats stats);
  void set_model(std::shared_ptr<const ServedModel> model);
  void release();

  bool wait_for_cancel(GenerationId id);
  // True once so many generations have begun.
  bool wait_for_submits(size_t count);
  bool wait_for_ends(size_t count);
  std::set<GenerationId> cancelled() const;
  GenerationRequest last_request() const;
  std::vector<GenerationRequest> requests() const;

  std::shared_ptr<const ServedModel> model() const override;
  Result<GenerationId> submit(
      GenerationRequest request,
      std::shared_ptr<GenerationSink> sink) override;
  void cancel(GenerationId id) override;
  EngineStats stats() const override;

 private:
  void run(GenerationId id, const FakeScript& script, GenerationSink& sink);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const ServedModel> model_;
  FakeScript script_;
  EngineStats stats_;
  std::vector<GenerationRequest> requests_;
  std::set<GenerationId> cancelled_;
  std::vector<std::thread> threads_; // generation i + 1 runs on number i
  size_t ends_ = 0;
  bool released_ = false;
};

} // namespace ingle
