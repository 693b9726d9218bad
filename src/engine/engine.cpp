#include "engine/engine.h"

#include <future>
#include <optional>
#include <utility>

#include "engine/check_request.h"
#include "engine/generator_errors.h"
#include "engine/load_served_model.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "model/load_model.h"
#include "model/memory_plan.h"

namespace ingle {
namespace {

// Tells the engine when a generation ends, and when its sink has heard of it.
class CountingSink final : public GenerationSink {
 public:
  CountingSink(
      std::shared_ptr<GenerationSink> sink,
      std::function<void()> on_closed,
      std::function<void()> on_told)
      : sink_(std::move(sink)),
        on_closed_(std::move(on_closed)),
        on_told_(std::move(on_told)) {}
  void on_prefill(PrefillStep step) override {
    sink_->on_prefill(std::move(step));
  }
  void on_delta(GenerationDelta delta) override {
    sink_->on_delta(std::move(delta));
  }
  void on_end(GenerationEnd end) override {
    on_closed_();
    sink_->on_end(std::move(end));
    on_told_();
  }

 private:
  std::shared_ptr<GenerationSink> sink_;
  std::function<void()> on_closed_;
  std::function<void()> on_told_;
};

// One step on a state that is thrown away: what MLX sets up lazily is not left
// to the first request, and a model that can't answer is not announced.
Status warm_up(const Model& model) {
  KvState kv = model.make_kv();
  const TokenId token = 0;
  const Row row{{&token, 1}, &kv, Logits::kLast};
  INGLE_ASSIGN_OR_RETURN(const auto logits, run_step(model, {&row, 1}));
  if (!logits) {
    return Status::internal("it gave no logits");
  }
  return sample(
             model.logit_passes(),
             {logits->data<float>(), logits->size()},
             {},
             {},
             0,
             0)
      .status();
}

EngineStats settings_of(const EngineOptions& options) {
  EngineStats stats;
  stats.max_rows = options.max_rows;
  stats.queue_limit = options.queue_limit;
  stats.prompt_cache.max_bytes = options.prompt_cache_bytes;
  stats.usable_bytes = options.usable_memory;
  return stats;
}

std::map<std::string, int> count_schemes(const KvState& kv) {
  std::map<std::string, int> counts;
  for (const std::string& scheme : kv.schemes()) {
    ++counts[scheme];
  }
  return counts;
}

PromptCacheFigures figures_of(const PromptCacheStats& stats) {
  return {
      stats.entries,
      stats.bytes,
      stats.max_bytes,
      stats.checkpoint_bytes,
      stats.hits,
      stats.misses,
      stats.evicted};
}

std::string describe_compute(const Model& model) {
  if (model.kernels() == nullptr) {
    return "MLX's own ops";
  }
  const int threads = model.kernels()->pool().threads();
  return std::string(to_string(model.kernels()->context().set.isa)) +
      " kernels, " + std::to_string(threads) +
      (threads == 1 ? " thread" : " threads");
}

std::string megabytes(uint64_t bytes) {
  return std::to_string((bytes + 999'999) / 1'000'000) + " MB";
}

// What fits in memory; nothing: nobody says how much there is.
struct Fit {
  std::optional<int> context; // tokens of a sequence
  std::optional<uint64_t> kv_bytes; // of all sequences together
};

// Errors: kOverloaded, reason "over_memory_budget" (not one token fits); those
// of MemoryPlan.
Result<Fit> fit(const EngineOptions& options, FileSystem& fs) {
  if (!options.usable_memory) {
    return Fit();
  }
  const uint64_t usable = *options.usable_memory;
  INGLE_ASSIGN_OR_RETURN(
      const MemoryPlan plan,
      MemoryPlan::of(
          fs, options.model_folder, options.run, options.prefill_chunk));
  const int64_t context = plan.max_context(usable);
  if (context < 1) {
    const MemoryUse use = plan.at(1);
    return Status::overloaded(
               options.model_folder + " takes " + megabytes(use.total()) +
               " to read its first token (" + megabytes(use.weights) +
               " of weights), and " + megabytes(usable) +
               " may be used: allow more with --memory-budget, or take a "
               "smaller model")
        .with_reason("over_memory_budget");
  }
  const MemoryUse use = plan.at(context);
  return Fit{static_cast<int>(context), usable - (use.total() - use.kv)};
}

} // namespace

// What lives on the engine thread.
class Engine::Runner {
 public:
  Runner(
      const EngineOptions& options,
      FileSystem& fs,
      const Clock& clock,
      EngineMeter& meter)
      : options_(options),
        fs_(fs),
        clock_(clock),
        meter_(meter),
        cache_(options.prompt_cache_bytes) {}

  Result<std::shared_ptr<const ServedModel>> load(std::stop_token stop) {
    INGLE_ASSIGN_OR_RETURN(const Fit memory, fit(options_, fs_));
    const std::string& folder = options_.model_folder;
    INGLE_ASSIGN_OR_RETURN(
        const ModelConfig config, read_model_config(fs_, folder));
    INGLE_ASSIGN_OR_RETURN(
        auto served,
        load_served_model(fs_, clock_, folder, config, options_.defaults));
    INGLE_ASSIGN_OR_RETURN(
        model_,
        load_model(
            fs_,
            folder,
            config,
            options_.run,
            std::move(stop),
            options_.on_load_progress));
    served->memory_context = memory.context;
    if (!options_.model_name.empty()) {
      served->name = options_.model_name;
    }
    served->weight_bytes = model_->weight_bytes();
    served->compute = describe_compute(*model_);
    const KvState kv = model_->make_kv();
    served->forgets = kv.forgets();
    meter_.set_kv_layers(count_schemes(kv));
    INGLE_ASSIGN_OR_RETURN(
        served->adapters,
        AdapterRegistry::make(
            fs_, options_.adapters, served->name, model_->adapter_layout()));
    INGLE_RETURN_IF_ERROR(
        warm_up(*model_).with_context("the model's first step failed"));
    SchedulerOptions options;
    options.max_rows = options_.max_rows;
    options.prefill_chunk = options_.prefill_chunk;
    options.max_token_gap = options_.max_token_gap;
    options.kv_budget = memory.kv_bytes;
    options.on_cache_change = [this] {
      meter_.set_prompt_cache(figures_of(cache_.stats()));
    };
    scheduler_.emplace(*model_, served, options, clock_, cache_);
    return std::shared_ptr<const ServedModel>(std::move(served));
  }

  bool is_busy() const {
    return scheduler_->is_busy();
  }

  void deliver(Mail mail) {
    for (auto& each : mail.submissions) {
      if (auto* const work = std::get_if<ExclusiveWork>(&each)) {
        scheduler_->add(std::move(*work));
        continue;
      }
      Submission& submission = std::get<Submission>(each);
      scheduler_->add(
          {submission.id,
           std::move(submission.request),
           submission.seed,
           std::move(submission.sink)});
    }
    for (const GenerationId id : mail.cancellations) {
      scheduler_->cancel(id);
    }
    if (mail.stop) {
      scheduler_->cancel_all();
    }
  }

  void step() {
    scheduler_->step();
  }

 private:
  const EngineOptions& options_;
  FileSystem& fs_;
  const Clock& clock_;
  EngineMeter& meter_;
  std::unique_ptr<const Model> model_;
  PromptCache cache_; // MLX frees its arrays on this thread, before the model
  std::optional<Scheduler> scheduler_;
};

Engine::Engine(EngineOptions options, FileSystem& fs, const Clock& clock)
    : options_(std::move(options)),
      fs_(fs),
      clock_(clock),
      meter_(settings_of(options_), clock),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Engine::~Engine() {
  stop();
}

void Engine::request_stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    mail_.stop = true;
  }
  changed_.notify_all();
  thread_.request_stop();
}

void Engine::stop() {
  request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Engine::run(const std::stop_token& stop) {
  Runner runner(options_, fs_, clock_, meter_);
  auto loaded = runner.load(stop);
  {
    MutexLock lock(mutex_);
    loaded_ = true;
    load_status_ = loaded.status();
    if (loaded.is_ok()) {
      model_ = *loaded;
    }
  }
  changed_.notify_all();
  if (!loaded.is_ok()) {
    return; // nothing was submitted: there is no model()
  }
  while (true) {
    Mail mail = wait_for_mail(/*block=*/!runner.is_busy());
    const bool stopping = mail.stop;
    runner.deliver(std::move(mail));
    if (stopping) {
      return;
    }
    if (runner.is_busy()) {
      meter_.count_step();
    }
    runner.step();
  }
}

Engine::Mail Engine::wait_for_mail(bool block) {
  MutexLock lock(mutex_);
  while (block && !mail_.stop && mail_.submissions.empty() &&
         mail_.cancellations.empty()) {
    changed_.wait(mutex_);
  }
  return std::exchange(mail_, {});
}

Status Engine::wait_until_loaded() {
  MutexLock lock(mutex_);
  while (!loaded_ && !stopping_) {
    changed_.wait(mutex_);
  }
  if (!loaded_) {
    return Status::cancelled("stopped while the model was loading");
  }
  return load_status_;
}

std::shared_ptr<const ServedModel> Engine::model() const {
  MutexLock lock(mutex_);
  return model_;
}

Status Engine::check_serving() const {
  if (stopping_) {
    return server_stopping();
  }
  return loaded_ ? load_status_ : model_loading();
}

EngineStats Engine::stats() const {
  return meter_.read();
}

Result<GenerationId> Engine::submit(
    GenerationRequest request,
    std::shared_ptr<GenerationSink> sink) {
  auto id = queue(std::move(request), std::move(sink));
  if (!id.is_ok()) {
    meter_.count_refusal(id.status());
  }
  return id;
}

Result<GenerationId> Engine::queue(
    GenerationRequest request,
    std::shared_ptr<GenerationSink> sink) {
  std::shared_ptr<const ServedModel> model;
  {
    MutexLock lock(mutex_);
    INGLE_RETURN_IF_ERROR(check_serving());
    model = model_;
  }
  INGLE_RETURN_IF_ERROR(check_request(request, *model)); // reads it all
  GenerationId id = 0;
  {
    MutexLock lock(mutex_);
    INGLE_RETURN_IF_ERROR(check_serving());
    if (open_ >= options_.queue_limit) {
      return Status::overloaded(
                 "the queue is full (" + std::to_string(open_) +
                 " requests), try again later")
          .with_reason("queue_full");
    }
    ++open_;
    id = ++last_id_;
    const uint64_t seed = request.sampling.seed
        ? *request.sampling.seed
        : default_seeds_.next(clock_.since_epoch());
    ++busy_;
    auto counting = std::make_shared<CountingSink>(
        std::move(sink),
        [this] {
          MutexLock closing(mutex_);
          --open_;
        },
        [this] { end_one(); });
    mail_.submissions.emplace_back(Submission{
        id, std::move(request), seed, meter_.watch(std::move(counting))});
  }
  changed_.notify_all();
  return id;
}

void Engine::end_one() {
  {
    MutexLock lock(mutex_);
    --busy_;
  }
  changed_.notify_all();
}

Status Engine::run_exclusively(
    std::function<void()> work,
    std::chrono::milliseconds max_wait) {
  std::promise<bool> has_run;
  const auto finish = [&](bool value) {
    end_one();
    has_run.set_value(value);
  };
  {
    MutexLock lock(mutex_);
    INGLE_RETURN_IF_ERROR(check_serving());
    ++busy_;
    mail_.submissions.emplace_back(ExclusiveWork{
        [&] {
          work();
          finish(true);
        },
        [&] { finish(false); },
        clock_.now() + max_wait});
  }
  changed_.notify_all();
  if (has_run.get_future().get()) {
    return Status::ok();
  }
  return Status::overloaded(
             "the engine was not free within " +
             std::to_string(max_wait.count()) + " ms, try again later")
      .with_reason("engine_busy");
}

bool Engine::is_busy() const {
  MutexLock lock(mutex_);
  return busy_ > 0;
}

void Engine::wait_until_idle() {
  MutexLock lock(mutex_);
  while (busy_ > 0) {
    changed_.wait(mutex_);
  }
}

void Engine::cancel(GenerationId id) {
  {
    MutexLock lock(mutex_);
    mail_.cancellations.push_back(id);
  }
  changed_.notify_all();
}

} // namespace ingle
