#include "engine/scheduler.h"

#include <algorithm>

#include "model/run_mlx.h"

namespace ingle {
namespace {

// Room for the answer that is reserved at once; longer ones grow into it.
constexpr int kReservedAnswer = 1024; // tokens

} // namespace

Scheduler::Scheduler(
    const Model& model,
    std::shared_ptr<const ServedModel> served,
    SchedulerOptions options,
    const Clock& clock,
    OnDeparture on_departure)
    : model_(model),
      served_(std::move(served)),
      options_(options),
      clock_(clock),
      on_departure_(std::move(on_departure)),
      evaluation_(clock),
      sampling_(clock) {}

Status Scheduler::add(Arrival arrival) {
  const auto length = static_cast<int64_t>(arrival.request.prompt.size());
  if (arrival.request.prompt_logprobs) {
    arrival.kv.reset();
  }
  const int64_t held = arrival.kv ? arrival.kv->offset() : 0;
  if (held >= length) {
    return Status::invalid_request(
        "the KV state holds " + std::to_string(held) +
        " tokens, which leaves none of the prompt's " + std::to_string(length) +
        " to forward");
  }
  queue_.push_back(std::move(arrival));
  return Status::ok();
}

void Scheduler::cancel(GenerationId id) {
  for (auto& row : rows_) {
    if (row->id() == id) {
      row->cancel();
    }
  }
  const auto queued =
      std::find_if(queue_.begin(), queue_.end(), [&](const Arrival& arrival) {
        return arrival.id == id;
      });
  if (queued != queue_.end()) {
    const auto sink = queued->sink;
    queue_.erase(queued);
    sink->on_end({Status::ok(), FinishReason::kCancelled, {}});
  }
  retire_finished();
}

void Scheduler::cancel_all() {
  for (auto& row : rows_) {
    row->cancel();
  }
  retire_finished();
  for (const Arrival& arrival : std::exchange(queue_, {})) {
    arrival.sink->on_end({Status::ok(), FinishReason::kCancelled, {}});
  }
}

void Scheduler::step() {
  admit();
  const std::vector<Sequence*> chosen = choose_rows();
  if (!chosen.empty()) {
    forward(chosen);
  }
  retire_finished();
}

void Scheduler::admit() {
  while (!queue_.empty() && std::ssize(rows_) < options_.max_rows) {
    Arrival arrival = std::move(queue_.front());
    queue_.pop_front();
    const auto positions = static_cast<int64_t>(arrival.request.prompt.size()) +
        std::min(arrival.request.max_tokens, kReservedAnswer);
    KvState kv = arrival.kv ? std::move(*arrival.kv) : model_.make_kv();
    const Status reserved = run_mlx("reserve", [&] { kv.reserve(positions); });
    auto row = std::make_unique<Sequence>(
        arrival.id,
        std::move(arrival.request),
        arrival.seed,
        std::move(arrival.sink),
        std::move(kv),
        served_,
        model_.logit_passes(),
        clock_);
    if (reserved.is_ok()) {
      rows_.push_back(std::move(row));
    } else {
      row->report_failure(reserved);
    }
  }
}

std::vector<Sequence*> Scheduler::choose_rows() const {
  std::vector<Sequence*> chosen;
  bool prefill_chosen = false;
  for (const auto& row : rows_) {
    if (!row->is_prefilling()) {
      chosen.push_back(row.get());
    } else if (!prefill_chosen) {
      prefill_chosen = true;
      chosen.push_back(row.get());
    }
  }
  return chosen;
}

void Scheduler::forward(const std::vector<Sequence*>& chosen) {
  std::vector<Row> batch;
  for (Sequence* sequence : chosen) {
    batch.push_back(sequence->next_row(options_.prefill_chunk));
  }
  const auto step = run_step(model_, batch, &evaluation_);
  if (!step.is_ok()) {
    for (Sequence* sequence : chosen) {
      fail(*sequence, step.status());
    }
    return;
  }
  std::span<const float> rest; // of the logits
  size_t vocabulary = 0;
  if (const std::optional<mx::array>& logits = *step) {
    rest = {logits->data<float>(), logits->size()};
    vocabulary = static_cast<size_t>(logits->shape(1));
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    const size_t size = logits_count(batch[i]) * vocabulary;
    const Status status = chosen[i]->accept(rest.first(size), sampling_);
    rest = rest.subspan(size);
    if (!status.is_ok()) {
      fail(*chosen[i], status);
    }
  }
}

void Scheduler::fail(Sequence& sequence, const Status& status) {
  sequence.report_failure(status);
  std::erase_if(rows_, [&](const auto& row) { return row.get() == &sequence; });
}

void Scheduler::retire_finished() {
  // Taken out first: a sink or the departure's taker may look at the scheduler.
  const auto first_finished =
      std::stable_partition(rows_.begin(), rows_.end(), [](const auto& row) {
        return !row->finished();
      });
  Rows finished(
      std::make_move_iterator(first_finished),
      std::make_move_iterator(rows_.end()));
  rows_.erase(first_finished, rows_.end());
  for (auto& row : finished) {
    std::vector<TokenId> tokens = row->cache_tokens();
    on_departure_({row->id(), std::move(tokens), row->take_kv()});
    row->report_end();
  }
}

} // namespace ingle
