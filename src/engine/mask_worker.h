// The masks of rows that follow a grammar, computed beside the forward.
//
// A mask takes microseconds as a rule and some hundred milliseconds at worst,
// and does not depend on the logits: it is started with the step that computes
// them, and waited for where a token is chosen.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/token.h"
#include "text/grammar.h"

namespace ingle {

// One thread for all rows of a scheduler, started for the first of them.
//
// Threads: the engine thread calls.
class MaskWorker {
 public:
  MaskWorker() = default;
  // Waits for the mask that is being computed; the others are left out.
  ~MaskWorker();
  MaskWorker(const MaskWorker&) = delete;
  MaskWorker& operator=(const MaskWorker&) = delete;

 private:
  friend class RowGrammar;

  // A row's matcher and its mask: the worker's from start() until wait()
  // returns, else the row's.
  struct Job {
    std::shared_ptr<const Grammar> grammar;
    std::unique_ptr<GrammarMatcher> matcher; // made with the first mask
    std::vector<uint32_t> bits;
    Status status;
    bool is_done = true; // guarded by the worker's mutex
  };

  void start(std::shared_ptr<Job> job);
  void wait(const Job& job);
  void run(const std::stop_token& stop);
  static void compute(Job& job);

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<Job>> queue_ INGLE_GUARDED_BY(mutex_);
  std::jthread thread_; // last: it uses all of the above
};

// Where one row stands in its grammar.
//
// Threads: the engine thread. Errors: those of GrammarMatcher, "grammar: ...";
//          the row has to be failed.
class RowGrammar {
 public:
  // `worker` outlives it.
  RowGrammar(
      std::shared_ptr<const Grammar> grammar,
      size_t vocab_size,
      MaskWorker& worker);

  // The next token's logits are about to be computed.
  void start_mask() {
    worker_.start(job_);
  }
  // Makes the logits of all tokens that may not come next -infinity, and those
  // of `never` with them. False: none is left, and the answer is complete.
  // Requires: start_mask(), once for each.
  Result<bool> apply(std::span<float> logits, std::span<const TokenId> never);
  // The token, which was allowed, is the next one.
  Status accept(TokenId token);
  // Nothing but an end of sequence can follow.
  bool has_ended() const {
    return job_->matcher != nullptr && job_->matcher->has_ended();
  }

 private:
  const std::shared_ptr<MaskWorker::Job> job_;
  MaskWorker& worker_;
};

} // namespace ingle
