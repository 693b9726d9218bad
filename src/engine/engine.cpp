#include "engine/engine.h"

#include <algorithm>
#include <cmath>

#include "engine/load_served_model.h"
#include "engine/scheduler.h"
#include "model/load_model.h"

namespace ingle {
namespace {

// Tells the engine when a generation ends, whatever its sink does.
class CountingSink final : public GenerationSink {
 public:
  CountingSink(
      std::shared_ptr<GenerationSink> sink,
      std::function<void()> on_closed)
      : sink_(std::move(sink)), on_closed_(std::move(on_closed)) {}
  void on_delta(GenerationDelta delta) override {
    sink_->on_delta(std::move(delta));
  }
  void on_end(GenerationEnd end) override {
    on_closed_();
    sink_->on_end(std::move(end));
  }

 private:
  std::shared_ptr<GenerationSink> sink_;
  std::function<void()> on_closed_;
};

// NaN fails every comparison, so each is written to hold for what is good.
Status check_sampling(const SamplingParams& sampling) {
  if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature))) {
    return Status::invalid_request("temperature has to be 0 or more");
  }
  if (!(sampling.top_p >= 0 && sampling.top_p <= 1)) {
    return Status::invalid_request("top_p has to be from 0 to 1");
  }
  if (sampling.top_k < 0) {
    return Status::invalid_request("top_k has to be 0 or more");
  }
  return Status::ok();
}

Status check_request(
    const GenerationRequest& request,
    const ServedModel& model) {
  if (request.prompt.empty()) {
    return Status::invalid_request("the prompt has no tokens");
  }
  const auto bad = std::find_if(
      request.prompt.begin(), request.prompt.end(), [&](TokenId id) {
        return id < 0 || id >= model.vocab_size;
      });
  if (bad != request.prompt.end()) {
    return Status::invalid_request(
        "the token id " + std::to_string(*bad) +
        " is not in the model's vocabulary of " +
        std::to_string(model.vocab_size));
  }
  if (request.max_tokens < 1) {
    return Status::invalid_request("max_tokens has to be at least 1");
  }
  INGLE_RETURN_IF_ERROR(check_sampling(request.sampling));
  const size_t needed =
      request.prompt.size() + static_cast<size_t>(request.max_tokens);
  if (needed > static_cast<size_t>(model.context_length)) {
    return Status::invalid_request(
               "the prompt has " + std::to_string(request.prompt.size()) +
               " tokens and the answer may have " +
               std::to_string(request.max_tokens) + ", but the context of '" +
               model.name + "' holds " + std::to_string(model.context_length))
        .with_reason("context_length_exceeded");
  }
  return Status::ok();
}

} // namespace

// What lives on the engine thread.
class Engine::Runner {
 public:
  Runner(const EngineOptions& options, FileSystem& fs, const Clock& clock)
      : options_(options), fs_(fs), clock_(clock) {}

  Result<std::shared_ptr<const ServedModel>> load(std::stop_token stop) {
    INGLE_ASSIGN_OR_RETURN(
        model_,
        load_model(
            fs_, options_.model_folder, options_.numerics, std::move(stop)));
    INGLE_ASSIGN_OR_RETURN(
        auto served,
        load_served_model(
            fs_, clock_, options_.model_folder, model_->config()));
    SchedulerOptions options;
    options.prefill_chunk = options_.prefill_chunk;
    scheduler_.emplace(*model_, served, options, clock_, [](Departure) {
      // No prompt cache yet: the state dies with its request.
    });
    return served;
  }

  bool is_busy() const {
    return scheduler_->is_busy();
  }

  void deliver(Mail mail) {
    for (Submission& submission : mail.submissions) {
      Arrival arrival{
          submission.id,
          std::move(submission.request),
          submission.seed,
          std::move(submission.sink),
          std::nullopt};
      const auto sink = arrival.sink;
      Status added = scheduler_->add(std::move(arrival));
      if (!added.is_ok()) {
        sink->on_end({std::move(added), FinishReason::kStop, {}});
      }
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
  std::unique_ptr<const Model> model_;
  std::optional<Scheduler> scheduler_;
};

Engine::Engine(EngineOptions options, FileSystem& fs, const Clock& clock)
    : options_(std::move(options)),
      fs_(fs),
      clock_(clock),
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
  Runner runner(options_, fs_, clock_);
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

Result<GenerationId> Engine::submit(
    GenerationRequest request,
    std::shared_ptr<GenerationSink> sink) {
  GenerationId id = 0;
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      return Status::overloaded("the server is stopping")
          .with_reason("server_stopping");
    }
    if (!loaded_) {
      return Status::overloaded("the model is still loading, try again soon")
          .with_reason("model_loading");
    }
    INGLE_RETURN_IF_ERROR(load_status_);
    INGLE_RETURN_IF_ERROR(check_request(request, *model_));
    if (open_ >= options_.queue_limit) {
      return Status::overloaded(
                 "the queue is full (" + std::to_string(open_) +
                 " requests), try again later")
          .with_reason("queue_full");
    }
    ++open_;
    id = ++last_id_;
    const uint64_t seed =
        request.sampling.seed ? *request.sampling.seed : next_default_seed();
    auto counting = std::make_shared<CountingSink>(std::move(sink), [this] {
      MutexLock closing(mutex_);
      --open_;
    });
    mail_.submissions.push_back(
        {id, std::move(request), seed, std::move(counting)});
  }
  changed_.notify_all();
  return id;
}

void Engine::cancel(GenerationId id) {
  {
    MutexLock lock(mutex_);
    mail_.cancellations.push_back(id);
  }
  changed_.notify_all();
}

uint64_t Engine::next_default_seed() {
  // The counter keeps apart two requests of the same millisecond.
  seed_counter_ += 0x9E3779B9u;
  const auto now = static_cast<uint32_t>(clock_.since_epoch().count());
  return now ^ seed_counter_;
}

} // namespace ingle
