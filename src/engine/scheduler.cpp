#include "engine/scheduler.h"

#include <algorithm>

#include "model/run_mlx.h"

namespace ingle {
namespace {

// Room for the answer that is reserved at once; longer ones grow into it.
constexpr int kReservedAnswer = 1024; // tokens

// Positions that a row begins with room for.
int64_t reserved_at_first(const GenerationRequest& request) {
  return std::ssize(request.prompt) +
      std::min(request.max_tokens, kReservedAnswer);
}

std::string join(const std::vector<std::string>& schemes) {
  std::string joined;
  for (const std::string& scheme : schemes) {
    joined += scheme + ' ';
  }
  return joined;
}

void end_unstarted(const Arrival& arrival) {
  GenerationStats stats;
  stats.prompt_tokens = static_cast<int>(arrival.request.prompt.size());
  arrival.sink->on_end({Status::ok(), FinishReason::kCancelled, stats});
}

const Arrival* generation_in(const Arrival& arrival) {
  return &arrival;
}
template <class Work>
const Arrival* generation_in(const std::variant<Arrival, Work>& queued) {
  return std::get_if<Arrival>(&queued);
}

// Ends the generation and takes it out, where there is one of the id.
template <class Waiting>
void cancel_in(Waiting& waiting, GenerationId id) {
  const auto found =
      std::find_if(waiting.begin(), waiting.end(), [&](const auto& each) {
        const Arrival* generation = generation_in(each);
        return generation != nullptr && generation->id == id;
      });
  if (found != waiting.end()) {
    const auto removed = std::move(*found);
    waiting.erase(found);
    end_unstarted(*generation_in(removed));
  }
}

} // namespace

Scheduler::Scheduler(
    const Model& model,
    std::shared_ptr<const ServedModel> served,
    SchedulerOptions options,
    const Clock& clock,
    PromptCache& cache)
    : model_(model),
      served_(std::move(served)),
      options_(options),
      clock_(clock),
      cache_(cache),
      empty_(model.make_kv()),
      kv_scheme_(join(empty_.schemes())),
      piece_size_(options.prefill_chunk, options.max_token_gap),
      evaluation_(clock),
      sampling_(clock) {}

void Scheduler::add(Arrival arrival) {
  queue_.emplace_back(std::move(arrival));
}

void Scheduler::add(ExclusiveWork work) {
  queue_.emplace_back(std::move(work));
}

void Scheduler::cancel(GenerationId id) {
  for (auto& row : rows_) {
    if (row->id() == id) {
      row->end(FinishReason::kCancelled);
    }
  }
  cancel_in(queue_, id);
  cancel_in(waiting_, id);
  retire_finished();
}

void Scheduler::cancel_all() {
  for (auto& row : rows_) {
    row->end(FinishReason::kCancelled);
  }
  retire_finished();
  for (const Arrival& arrival : std::exchange(waiting_, {})) {
    end_unstarted(arrival);
  }
  for (const auto& queued : std::exchange(queue_, {})) {
    if (const auto* work = std::get_if<ExclusiveWork>(&queued)) {
      work->give_up();
    } else {
      end_unstarted(std::get<Arrival>(queued));
    }
  }
}

void Scheduler::step() {
  give_up_late_work();
  admit();
  start_waiting();
  make_room();
  std::vector<Sequence*> chosen = choose_rows();
  if (!chosen.empty()) {
    forward(std::move(chosen));
  }
  retire_finished();
}

// Admission.

void Scheduler::give_up_late_work() {
  for (auto queued = queue_.begin(); queued != queue_.end();) {
    const auto* work = std::get_if<ExclusiveWork>(&*queued);
    if (work != nullptr && is_running() && clock_.now() >= work->deadline) {
      const auto give_up = work->give_up;
      queued = queue_.erase(queued);
      give_up();
    } else {
      ++queued;
    }
  }
}

void Scheduler::admit() {
  while (!queue_.empty()) {
    if (const auto* work = std::get_if<ExclusiveWork>(&queue_.front())) {
      if (is_running()) {
        return;
      }
      work->run();
    } else {
      Arrival& arrival = std::get<Arrival>(queue_.front());
      if (!has_room_for(arrival)) {
        return;
      }
      waiting_.push_back(std::move(arrival));
    }
    queue_.pop_front();
  }
}

bool Scheduler::has_room_for(const Arrival& arrival) const {
  return !is_running() ||
      (rows_.size() + waiting_.size() <
           static_cast<size_t>(options_.max_rows) &&
       (!options_.kv_budget ||
        claimed() + claim_of(arrival) <= *options_.kv_budget));
}

// Of a state with its checkpoints.
uint64_t Scheduler::bytes_for(int64_t positions) const {
  return empty_.bytes_for(positions, options_.prefill_chunk) +
      ResumableKv::kMaxCheckpoints *
      empty_.checkpoint_bytes_for(positions, options_.prefill_chunk);
}

uint64_t Scheduler::claim_of(const Arrival& arrival) const {
  const GenerationRequest& request = arrival.request;
  return bytes_for(
      request.is_open_ended ? reserved_at_first(request)
                            : std::ssize(request.prompt) + request.max_tokens);
}

uint64_t Scheduler::claim_of(const Sequence& row) const {
  return bytes_for(
      row.request().is_open_ended ? row.reserved() : row.longest());
}

uint64_t Scheduler::claimed() const {
  uint64_t total = 0;
  for (const auto& row : rows_) {
    total += claim_of(*row);
  }
  for (const Arrival& arrival : waiting_) {
    total += claim_of(arrival);
  }
  return total;
}

void Scheduler::leave_to_cache(uint64_t claims) {
  if (options_.kv_budget) {
    const uint64_t budget = *options_.kv_budget;
    cache_.shrink_to(budget - std::min(budget, claims));
  }
}

// Those that need not wait any more become rows.
void Scheduler::start_waiting() {
  for (size_t i = 0; i < waiting_.size();) {
    const Reuse reuse = find_reuse(i);
    if (reuse.plan.waits) {
      if (reuse.row != nullptr) {
        reuse.row->add_resume_point(reuse.plan.length);
      }
      ++i;
      continue;
    }
    Arrival arrival = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    start(std::move(arrival), reuse);
  }
}

// Of the prompt cache, rows, and what waits before it.
Scheduler::Reuse Scheduler::find_reuse(size_t waiting) const {
  const GenerationRequest& request = waiting_[waiting].request;
  if (!request.use_cache || request.prompt_logprobs) {
    return {};
  }
  const std::string space = space_of(request);
  const auto shares = [&](const GenerationRequest& other) {
    return other.use_cache && space_of(other) == space;
  };
  std::vector<PromptCache::EntryId> entries;
  std::vector<ReuseSource> sources = cache_.sources(space, entries);
  std::vector<Sequence*> rows;
  for (const auto& row : rows_) {
    if (shares(row->request())) {
      rows.push_back(row.get());
      sources.push_back(row->reuse_source());
    }
  }
  for (size_t i = 0; i < waiting; ++i) {
    if (shares(waiting_[i].request)) {
      sources.push_back({waiting_[i].request.prompt});
    }
  }
  Reuse reuse{plan_reuse(request.prompt, sources), /*looked=*/true};
  const size_t source = reuse.plan.source;
  if (source < entries.size()) {
    reuse.entry = entries[source];
  } else if (source - entries.size() < rows.size()) {
    reuse.row = rows[source - entries.size()];
  }
  return reuse;
}

void Scheduler::start(Arrival arrival, const Reuse& reuse) {
  const auto sink = arrival.sink;
  std::unique_ptr<Sequence> row;
  const Status made =
      run_mlx("admission", [&] { row = make_row(std::move(arrival), reuse); });
  tell_cache_change();
  if (!made.is_ok()) {
    sink->on_end({made, FinishReason::kStop, {}});
    return;
  }
  const auto later =
      std::find_if(rows_.begin(), rows_.end(), [&](const auto& other) {
        return other->id() > row->id();
      });
  rows_.insert(later, std::move(row));
}

std::unique_ptr<Sequence> Scheduler::make_row(
    Arrival arrival,
    const Reuse& reuse) {
  const int64_t positions = reserved_at_first(arrival.request);
  GenerationStats stats;
  stats.shared_tokens = static_cast<int>(reuse.plan.shared);
  if (reuse.plan.length > 0) {
    stats.cached_from = reuse.row != nullptr ? CachedFrom::kRow
        : reuse.plan.moves                   ? CachedFrom::kEntry
                                             : CachedFrom::kEntryPrefix;
  }
  const uint64_t claims = claimed() + claim_of(arrival);
  ResumableKv kv = take_over(reuse); // before the cache gives way
  leave_to_cache(claims);
  auto row = std::make_unique<Sequence>(
      arrival.id,
      std::move(arrival.request),
      arrival.seed,
      std::move(arrival.sink),
      std::move(kv),
      stats,
      served_,
      model_.logit_passes(),
      masks_,
      clock_);
  row->reserve(positions);
  return row;
}

ResumableKv Scheduler::take_over(const Reuse& reuse) {
  const int64_t length = reuse.plan.length;
  if (length == 0) {
    if (reuse.looked) {
      cache_.count_miss();
    }
    return ResumableKv(model_.make_kv());
  }
  return reuse.row != nullptr
      ? reuse.row->fork_kv(length)
      : cache_.take(reuse.entry, length, reuse.plan.moves);
}

// Weights and scales of adapters, not their names.
std::string Scheduler::space_of(const GenerationRequest& request) const {
  return request.adapters == nullptr ? kv_scheme_
                                     : kv_scheme_ + request.adapters->key();
}

// Steps.

// Answers that come to where no room is set aside get more, or end.
void Scheduler::make_room() {
  std::vector<std::pair<Sequence*, Status>> failed;
  for (const auto& row : rows_) {
    if (row->needs_room() && row->reserved() < row->longest()) {
      const Status grown = grow(*row);
      if (!grown.is_ok()) {
        failed.emplace_back(row.get(), grown);
      }
    }
  }
  for (const auto& [row, status] : failed) {
    fail(*row, status);
  }
}

Status Scheduler::grow(Sequence& row) {
  const int64_t positions =
      std::min(row.reserved() + kReservedAnswer, row.longest());
  if (row.request().is_open_ended && options_.kv_budget) {
    const uint64_t claims = claimed() - claim_of(row) + bytes_for(positions);
    const bool is_alone = rows_.size() + waiting_.size() == 1;
    if (claims > *options_.kv_budget && !is_alone) {
      row.end(FinishReason::kLength);
      return Status::ok();
    }
    leave_to_cache(claims);
    tell_cache_change();
  }
  return run_mlx("reserve", [&] { row.reserve(positions); });
}

std::vector<Sequence*> Scheduler::choose_rows() const {
  std::vector<Sequence*> chosen;
  bool prefill_chosen = false;
  for (const auto& row : rows_) {
    if (row->finished()) {
      continue;
    }
    if (!row->is_prefilling()) {
      chosen.push_back(row.get());
    } else if (!prefill_chosen) {
      prefill_chosen = true;
      chosen.push_back(row.get());
    }
  }
  return chosen;
}

void Scheduler::forward(std::vector<Sequence*> chosen) {
  const auto start = clock_.now();
  const auto any = [&](const auto& condition) {
    return std::any_of(chosen.begin(), chosen.end(), condition);
  };
  const bool decodes =
      any([](const Sequence* each) { return !each->is_prefilling(); });
  const bool is_first =
      any([](const Sequence* each) { return each->is_fresh(); });
  const std::vector<Row> batch =
      next_rows(chosen, piece_size_.next(decodes, is_first));
  int prompt_tokens = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]->is_prefilling()) {
      prompt_tokens = static_cast<int>(batch[i].tokens.size());
    }
  }
  if (batch.empty()) {
    return;
  }
  const auto step = run_step(model_, batch, &evaluation_);
  if (!step.is_ok()) {
    for (Sequence* sequence : chosen) {
      fail(*sequence, step.status());
    }
    return;
  }
  accept(chosen, batch, *step);
  piece_size_.add_step(prompt_tokens, decodes, clock_.now() - start);
}

// Of those that can't give one (no thread for a mask, no memory) each fails
// alone, and is chosen no more.
std::vector<Row> Scheduler::next_rows(
    std::vector<Sequence*>& chosen,
    int piece) {
  std::vector<Row> batch;
  std::erase_if(chosen, [&](Sequence* sequence) {
    const Status made =
        run_mlx("row", [&] { batch.push_back(sequence->next_row(piece)); });
    if (!made.is_ok()) {
      fail(*sequence, made);
    }
    return !made.is_ok();
  });
  return batch;
}

void Scheduler::accept(
    const std::vector<Sequence*>& chosen,
    std::span<const Row> batch,
    const std::optional<mx::array>& logits) {
  std::span<const float> rest;
  size_t vocabulary = 0;
  if (logits) {
    rest = {logits->data<float>(), logits->size()};
    vocabulary = static_cast<size_t>(logits->shape(1));
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    const size_t size = logits_count(batch[i]) * vocabulary;
    Status status;
    // What a row's sampler or sink throws (no memory) is the row's alone.
    const Status thrown = run_mlx("row", [&] {
      status = chosen[i]->accept(rest.first(size), sampling_);
    });
    status = thrown.is_ok() ? status : thrown;
    rest = rest.subspan(size);
    if (!status.is_ok()) {
      fail(*chosen[i], status);
    }
  }
}

void Scheduler::fail(Sequence& sequence, const Status& status) {
  leave(sequence);
  sequence.report_failure(status);
  std::erase_if(rows_, [&](const auto& row) { return row.get() == &sequence; });
}

void Scheduler::retire_finished() {
  // Taken out first: a sink may look at the scheduler.
  const auto first_finished =
      std::stable_partition(rows_.begin(), rows_.end(), [](const auto& row) {
        return !row->finished();
      });
  Rows finished(
      std::make_move_iterator(first_finished),
      std::make_move_iterator(rows_.end()));
  rows_.erase(first_finished, rows_.end());
  for (auto& row : finished) {
    leave(*row);
    row->report_end();
  }
}

// What it has read is there for the next prompt before anybody hears of its
// end.
void Scheduler::leave(Sequence& sequence) {
  if (sequence.request().use_cache) {
    std::vector<TokenId> tokens = sequence.cache_tokens();
    cache_.put(
        space_of(sequence.request()), std::move(tokens), sequence.take_kv());
    tell_cache_change();
  }
}

void Scheduler::tell_cache_change() const {
  if (options_.on_cache_change) {
    options_.on_cache_change();
  }
}

} // namespace ingle
