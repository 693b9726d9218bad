#include "cli/bench_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/stopwatch.h"
#include "engine/load_served_model.h"
#include "model/load_model.h"

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
            *session.cache_),
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
    GenerationRequest reading = request(length, 1);
    reading.use_cache = false;
    add(std::move(reading));
    const auto begin = session_.clock_.now();
    while (scheduler_.is_busy()) {
      INGLE_RETURN_IF_ERROR(step());
      advance(std::min(length, kChunk));
    }
    const double took = seconds(session_.clock_.now() - begin);
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
    return Status::ok();
  }

  // Rows that have read the first `depth` tokens of the text and are about to
  // read one more: the first row, or an earlier test, has read them for all.
  Status start_rows() {
    if (test_.depth > 0) {
      add(request(test_.depth, 0));
      while (scheduler_.is_busy()) {
        INGLE_RETURN_IF_ERROR(step());
        advance(kChunk);
      }
    }
    for (int i = 0; i < test_.batch; ++i) {
      add(request(test_.depth + 1, lead_in() + test_.gen));
    }
    return Status::ok();
  }

  // Steps in which the first row decodes before the last does, and one more, so
  // that no row ends while it is measured.
  int lead_in() const {
    return test_.batch + 1;
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

  void add(GenerationRequest request) {
    scheduler_.add({++last_id_, std::move(request), kSeed, sink_});
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
