#include "cli/bench_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/stopwatch.h"
#include "engine/load_served_model.h"
#include "model/load_model.h"
#include "model/run_mlx.h"

namespace ingle {
namespace {

constexpr int kChunk = 512; // tokens of a prompt in a step, as the engine's
constexpr int kWarmUpSteps = 16; // of a decode test
constexpr uint64_t kSeed = 1;

class DroppingSink final : public GenerationSink {
 public:
  void on_delta(GenerationDelta /*delta*/) override {}
  void on_end(GenerationEnd end) override {
    if (status_.is_ok()) {
      status_ = std::move(end.status);
    }
  }
  // The first failure of a generation.
  const Status& status() const {
    return status_;
  }

 private:
  Status status_;
};

// The text that every test reads: spread over the vocabulary, always the same.
std::vector<TokenId> text(int length, int vocab_size) {
  std::vector<TokenId> ids;
  uint64_t state = kSeed;
  for (int i = 0; i < length; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX
    ids.push_back(static_cast<TokenId>(
        (state >> 33) % static_cast<uint64_t>(vocab_size)));
  }
  return ids;
}

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace

// One test: its scheduler, and how far it is.
class BenchSession::Run {
 public:
  Run(BenchSession& session,
      const BenchTest& test,
      int repeat,
      const OnProgress& on_progress)
      : session_(session),
        test_(test),
        on_progress_(on_progress),
        scheduler_(
            *session.model_,
            session.served_,
            {.max_rows = test.batch, .prefill_chunk = kChunk},
            session.clock_,
            [this](Departure departure) {
              departed_.push_back(std::move(departure.kv));
            }),
        total_(
            static_cast<uint64_t>(test.depth) +
            static_cast<uint64_t>(repeat + 1) *
                static_cast<uint64_t>(test.prompt + test.gen)) {
    measurement_.test = test;
  }

  Result<Measurement> measure(int repeat) {
    for (int i = 0; i <= repeat; ++i) {
      const bool is_warm_up = i == 0;
      INGLE_RETURN_IF_ERROR(
          test_.prompt > 0 ? read(is_warm_up) : decode(is_warm_up));
    }
    if (whole_ > 0) {
      measurement_.overhead_percent = 100 * (whole_ - evaluation_) / whole_;
      measurement_.sampler_percent = 100 * sampling_ / whole_;
    }
    return std::move(measurement_);
  }

 private:
  // Reads a prompt and picks the first token.
  Status read(bool is_warm_up) {
    const int length =
        is_warm_up ? std::min(test_.prompt, kChunk) : test_.prompt;
    INGLE_RETURN_IF_ERROR(add(request(length, 1), std::nullopt));
    const auto begin = session_.clock_.now();
    while (scheduler_.is_busy()) {
      INGLE_RETURN_IF_ERROR(step());
      advance(std::min(length, kChunk));
    }
    const double took = seconds(session_.clock_.now() - begin);
    departed_.clear();
    if (!is_warm_up) {
      measurement_.rates.push_back(length / took);
    }
    return Status::ok();
  }

  // Some steps until every row decodes, then `gen` steps of all rows.
  Status decode(bool is_warm_up) {
    const int steps =
        is_warm_up ? std::min(test_.gen, kWarmUpSteps) : test_.gen;
    INGLE_RETURN_IF_ERROR(start_rows());
    for (int i = 0; i < test_.batch; ++i) {
      INGLE_RETURN_IF_ERROR(step());
    }
    const auto evaluation = scheduler_.evaluation_time();
    const auto sampling = scheduler_.sampling_time();
    Stopwatch stepping(session_.clock_);
    for (int i = 0; i < steps; ++i) {
      INGLE_RETURN_IF_ERROR(stepping.time([&] { return step(); }));
      advance(1);
    }
    if (!is_warm_up) {
      const double took = seconds(stepping.total());
      measurement_.rates.push_back(steps * test_.batch / took);
      whole_ += took;
      evaluation_ += seconds(scheduler_.evaluation_time() - evaluation);
      sampling_ += seconds(scheduler_.sampling_time() - sampling);
    }
    scheduler_.cancel_all();
    return keep_first();
  }

  Status start_rows() {
    INGLE_ASSIGN_OR_RETURN(KvState first, read_up_to(test_.depth));
    std::vector<KvState> rows;
    for (int i = 1; i < test_.batch; ++i) {
      rows.push_back(
          test_.depth == 0 ? session_.model_->make_kv()
                           : first.snapshot(test_.depth).restore());
    }
    INGLE_RETURN_IF_ERROR(
        add(request(test_.depth + 1, lead_in() + test_.gen), std::move(first)));
    for (KvState& kv : rows) {
      INGLE_RETURN_IF_ERROR(
          add(request(test_.depth + 1, lead_in() + test_.gen), std::move(kv)));
    }
    return Status::ok();
  }

  // Steps in which the first row decodes before the last does, and one more, so
  // that no row ends while it is measured.
  int lead_in() const {
    return test_.batch + 1;
  }

  // A state that has read the first `depth` tokens of the text.
  Result<KvState> read_up_to(int depth) {
    auto kv = std::exchange(session_.deep_, std::nullopt);
    if (!kv || !kv->is_intact() || kv->offset() > depth) {
      kv = session_.model_->make_kv();
    }
    INGLE_RETURN_IF_ERROR(run_mlx(
        "reserve", [&] { kv->reserve(depth + 1 + lead_in() + test_.gen); }));
    const auto ids = text(depth, session_.model_->config().vocab_size);
    while (kv->offset() < depth) {
      const auto rest =
          std::span(ids).subspan(static_cast<size_t>(kv->offset()));
      const auto piece = rest.first(std::min<size_t>(rest.size(), kChunk));
      const Row row{piece, &*kv, Logits::kNone};
      INGLE_RETURN_IF_ERROR(check_stop());
      INGLE_RETURN_IF_ERROR(run_step(*session_.model_, {&row, 1}).status());
      advance(static_cast<int>(piece.size()));
    }
    return std::move(*kv);
  }

  // The first row's state serves again once it has forgotten its answer.
  Status keep_first() {
    KvState first = std::move(departed_.front());
    departed_.clear();
    if (test_.depth > 0 && first.can_trim_to(test_.depth)) {
      INGLE_RETURN_IF_ERROR(first.trim(test_.depth));
      session_.deep_ = std::move(first);
    }
    return Status::ok();
  }

  GenerationRequest request(int prompt, int max_tokens) const {
    GenerationRequest request;
    request.prompt = text(prompt, session_.model_->config().vocab_size);
    request.max_tokens = max_tokens;
    request.ignore_eos = true;
    if (test_.sampled) {
      request.sampling.temperature = static_cast<float>(kBenchTemperature);
      request.sampling.top_p = static_cast<float>(kBenchTopP);
    }
    return request;
  }

  Status add(GenerationRequest request, std::optional<KvState> kv) {
    return scheduler_.add(
        {++last_id_, std::move(request), kSeed, sink_, std::move(kv)});
  }

  Status check_stop() const {
    return session_.stop_.stop_requested() ? Status::cancelled("interrupted")
                                           : Status::ok();
  }

  Status step() {
    INGLE_RETURN_IF_ERROR(check_stop());
    scheduler_.step();
    return sink_->status();
  }

  void advance(int tokens) {
    done_ += static_cast<uint64_t>(tokens);
    on_progress_(std::min(done_, total_), total_);
  }

  BenchSession& session_;
  const BenchTest test_;
  const OnProgress& on_progress_;
  std::vector<KvState> departed_; // before the scheduler, which fills it
  Scheduler scheduler_;
  const std::shared_ptr<DroppingSink> sink_ = std::make_shared<DroppingSink>();
  GenerationId last_id_ = 0;
  Measurement measurement_;
  double whole_ = 0; // seconds of all measured decode steps
  double evaluation_ = 0;
  double sampling_ = 0;
  uint64_t done_ = 0; // tokens
  const uint64_t total_;
};

Result<BenchSession> BenchSession::load(
    FileSystem& fs,
    const Clock& clock,
    const std::string& folder,
    const RunOptions& options,
    std::stop_token stop,
    const OnProgress& on_progress) {
  INGLE_ASSIGN_OR_RETURN(
      const ModelConfig config, read_model_config(fs, folder));
  INGLE_ASSIGN_OR_RETURN(
      auto served, load_served_model(fs, clock, folder, config, {}));
  INGLE_ASSIGN_OR_RETURN(
      auto model, load_model(fs, folder, config, options, stop, on_progress));
  return BenchSession(
      std::move(model), std::move(served), clock, std::move(stop));
}

Result<Measurement> BenchSession::measure(
    const BenchTest& test,
    int repeat,
    const OnProgress& on_progress) {
  return Run(*this, test, repeat, on_progress).measure(repeat);
}

} // namespace ingle
