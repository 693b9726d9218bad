#include "http/testing/fake_generator.h"

#include <stdexcept>
#include <utility>

#include "api/testing/fake_served_model.h"

namespace ingle {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

} // namespace

FakeGenerator::FakeGenerator()
    : model_(std::make_shared<ServedModel>(make_fake_model())) {}

FakeGenerator::~FakeGenerator() {
  release();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void FakeGenerator::set_script(FakeScript script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
  released_ = false;
}

void FakeGenerator::set_model(std::shared_ptr<const ServedModel> model) {
  const std::lock_guard lock(mutex_);
  model_ = std::move(model);
}

void FakeGenerator::set_stats(EngineStats stats) {
  const std::lock_guard lock(mutex_);
  stats_ = std::move(stats);
}

void FakeGenerator::release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

bool FakeGenerator::wait_for_cancel(GenerationId id) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(
      lock, kPatience, [&] { return cancelled_.contains(id); });
}

bool FakeGenerator::wait_for_submits(size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(
      lock, kPatience, [&] { return threads_.size() >= count; });
}

bool FakeGenerator::wait_for_ends(size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return ends_ >= count; });
}

std::set<GenerationId> FakeGenerator::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

GenerationRequest FakeGenerator::last_request() const {
  const std::lock_guard lock(mutex_);
  return requests_.empty() ? GenerationRequest() : requests_.back();
}

std::vector<GenerationRequest> FakeGenerator::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::shared_ptr<const ServedModel> FakeGenerator::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

Result<GenerationId> FakeGenerator::submit(
    GenerationRequest request,
    std::shared_ptr<GenerationSink> sink) {
  const std::lock_guard lock(mutex_);
  if (script_.throws) {
    throw std::runtime_error("a bug of ours");
  }
  if (script_.refusal) {
    return *script_.refusal;
  }
  requests_.push_back(std::move(request));
  const GenerationId id = threads_.size() + 1;
  threads_.emplace_back([this, id, script = script_, kept = std::move(sink)] {
    run(id, script, *kept);
  });
  changed_.notify_all();
  return id;
}

void FakeGenerator::cancel(GenerationId id) {
  const std::lock_guard lock(mutex_);
  cancelled_.insert(id);
  changed_.notify_all();
}

EngineStats FakeGenerator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void FakeGenerator::run(
    GenerationId id,
    const FakeScript& script,
    GenerationSink& sink) {
  GenerationEnd end = script.end;
  end.stats.prompt_tokens = 6;
  for (const PrefillStep& step : script.prefill) {
    sink.on_prefill(step);
  }
  for (size_t i = 0; i <= script.pieces.size(); ++i) {
    std::unique_lock lock(mutex_);
    const auto is_cancelled = [&] {
      return !script.ignores_cancel && cancelled_.contains(id);
    };
    if (i >= script.hold_after) {
      changed_.wait(lock, [&] { return released_ || is_cancelled(); });
    }
    if (is_cancelled()) {
      end.reason = FinishReason::kCancelled;
      break;
    }
    lock.unlock();
    if (i < script.pieces.size()) {
      GenerationDelta delta;
      delta.tokens.push_back({});
      delta.text = script.pieces[i];
      sink.on_delta(std::move(delta));
      ++end.stats.generated_tokens;
    }
  }
  sink.on_end(std::move(end));
  const std::lock_guard lock(mutex_);
  ++ends_;
  changed_.notify_all();
}

} // namespace ingle
