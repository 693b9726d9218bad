// One generation from admission to its end: what it forwards next, and what
// becomes of the logits.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/stopwatch.h"
#include "cache/plan_reuse.h"
#include "cache/resumable_kv.h"
#include "engine/answer_text.h"
#include "engine/generator.h"
#include "engine/logits_processors.h"
#include "engine/mask_worker.h"
#include "model/model.h"

namespace ingle {

// Invariant after every step: the KV state has read the sequence's first
// tokens, as many as its offset says.
//
// Threads: the engine thread.
class Sequence {
 public:
  // `kv` has read the first tokens of the prompt, fewer than all, which came
  // from where `stats` says.
  // `masks` outlives the sequence.
  Sequence(
      GenerationId id,
      GenerationRequest request,
      uint64_t seed,
      std::shared_ptr<GenerationSink> sink,
      ResumableKv kv,
      GenerationStats stats,
      std::shared_ptr<const ServedModel> model,
      const LogitPasses& passes,
      MaskWorker& masks,
      const Clock& clock);

  GenerationId id() const {
    return id_;
  }
  const GenerationRequest& request() const {
    return request_;
  }
  // True iff prompt tokens are left to forward.
  bool is_prefilling() const {
    return prompt_left() > 0;
  }
  // True iff no step has read anything for it.
  bool is_fresh() const {
    return offset() == stats_.cached_tokens;
  }
  // Why it ended; nothing while it runs.
  const std::optional<FinishReason>& finished() const {
    return finished_;
  }

  // The tokens to forward in the next step: a piece of the prompt of at most
  // `chunk`, or the token that was sampled last; and the state that they
  // belong to. Valid until the next call of accept().
  Row next_row(int chunk);

  // Takes in that the row was forwarded: reports a piece of the prompt; at its
  // end, and for each token after it, samples and gives the token out.
  // `logits`: those that the row asked for. `sampling` gets the time that it
  // takes to pick a token from them.
  // Errors: kInternal; the sequence has to be failed.
  Status accept(std::span<const float> logits, Stopwatch& sampling);

  // What another prompt can take over of it. Valid until the next accept().
  ReuseSource reuse_source() const;
  // A state of another's that goes on at one of its resume points.
  ResumableKv fork_kv(int64_t length) const {
    return kv_.fork(length);
  }
  // Makes a position of the prompt that it has not read a resume point.
  void add_resume_point(int64_t position);

  // Positions that its state has room for, and may grow to.
  int64_t reserved() const {
    return reserved_;
  }
  int64_t longest() const {
    return std::ssize(request_.prompt) + request_.max_tokens;
  }
  // True iff the next token goes where no room is.
  bool needs_room() const {
    return !is_prefilling() && offset() >= reserved_;
  }
  // Throws std::bad_alloc, or what MLX throws.
  void reserve(int64_t positions) {
    kv_.state().reserve(positions);
    reserved_ = positions;
  }

  // Ends it from outside. Nothing more is sampled.
  void end(FinishReason reason) {
    finished_ = reason;
  }

  // Tells the sink how it ended. Called once, and last.
  void report_end();
  void report_failure(Status status);

  // prompt ++ the generated tokens that were forwarded: what its state has
  // read.
  std::vector<TokenId> cache_tokens() const;
  // Leaves the sequence without one.
  ResumableKv take_kv() {
    return std::move(kv_);
  }

 private:
  int64_t offset() const {
    return kv_.state().offset();
  }
  size_t generated() const {
    return tokens_.size() - request_.prompt.size();
  }
  size_t prompt_left() const;
  bool scores_prompt() const;
  bool ends_sequence(TokenId token) const;
  Row row_of(std::span<const TokenId> tokens, Logits logits);
  double elapsed_ms() const;
  Status report_piece(std::span<const float> logits, size_t length);
  Result<std::vector<GeneratedToken>> score(
      std::span<const float> logits,
      size_t length);
  void start_decode_clock();
  Status generate(std::span<const float> logits, Stopwatch& sampling);
  Result<std::optional<TokenId>> choose(
      std::span<const float>& logits,
      std::vector<float>& processed);
  Status emit(GeneratedToken token);

  const GenerationId id_;
  const GenerationRequest request_;
  const uint64_t seed_;
  const std::shared_ptr<GenerationSink> sink_;
  const std::shared_ptr<const ServedModel> model_;
  const LogitPasses passes_;
  const Clock& clock_;

  ResumableKv kv_;
  int64_t reserved_ = 0;
  // Where a piece of the prompt has to end, before which nothing is left to
  // read: a checkpoint is taken there. Ascending.
  std::vector<int64_t> resume_points_;
  size_t reported_ = 0; // tokens of the prompt
  // The prompt's next token, which the last piece has predicted.
  std::optional<GeneratedToken> scored_;
  LogitsProcessors processors_;
  std::optional<RowGrammar> grammar_;
  // prompt ++ what was sampled, a final end of sequence included.
  std::vector<TokenId> tokens_;
  AnswerText text_;
  std::optional<FinishReason> finished_;
  GenerationStats stats_;
  std::chrono::steady_clock::time_point phase_start_; // prefill, then decode
};

} // namespace ingle
