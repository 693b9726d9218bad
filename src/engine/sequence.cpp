#include "engine/sequence.h"

#include <algorithm>
#include <utility>

#include "engine/sampler.h"

namespace ingle {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

// Tokens of a prompt that are scored in one step: so much of [tokens, V] in f32
// is there at a time.
constexpr int kScored = 64;

} // namespace

Sequence::Sequence(
    GenerationId id,
    GenerationRequest request,
    uint64_t seed,
    std::shared_ptr<GenerationSink> sink,
    ResumableKv kv,
    GenerationStats stats,
    std::shared_ptr<const ServedModel> model,
    const LogitPasses& passes,
    MaskWorker& masks,
    const Clock& clock)
    : id_(id),
      request_(std::move(request)),
      seed_(seed),
      sink_(std::move(sink)),
      model_(std::move(model)),
      passes_(passes),
      clock_(clock),
      kv_(std::move(kv)),
      reported_(static_cast<size_t>(offset())),
      processors_(request_, model_->eos),
      tokens_(request_.prompt),
      text_(request_, *model_),
      stats_(stats),
      phase_start_(clock.now()) {
  if (request_.grammar) {
    grammar_.emplace(
        request_.grammar, static_cast<size_t>(model_->vocab_size), masks);
  }
  stats_.prompt_tokens = static_cast<int>(request_.prompt.size());
  stats_.cached_tokens = static_cast<int>(offset());
  for (const int hint : request_.resume_hints) {
    add_resume_point(hint);
  }
}

void Sequence::add_resume_point(int64_t position) {
  if (!kv_.state().forgets() || position <= offset() ||
      position >= std::ssize(request_.prompt)) {
    return;
  }
  const auto at =
      std::lower_bound(resume_points_.begin(), resume_points_.end(), position);
  if (at == resume_points_.end() || *at != position) {
    resume_points_.insert(at, position);
  }
}

ReuseSource Sequence::reuse_source() const {
  const size_t read = static_cast<size_t>(offset());
  return {
      is_prefilling() ? request_.prompt : std::span(tokens_).first(read),
      offset(),
      kv_.state().first_resume_point(),
      kv_.checkpoint_positions()};
}

size_t Sequence::prompt_left() const {
  const auto held = static_cast<size_t>(offset());
  return request_.prompt.size() - std::min(held, request_.prompt.size());
}

bool Sequence::scores_prompt() const {
  return request_.prompt_logprobs && request_.top_logprobs;
}

Row Sequence::next_row(int chunk) {
  const size_t left = prompt_left();
  if (left == 0) {
    if (grammar_) {
      grammar_->start_mask();
    }
    return row_of({&tokens_.back(), 1}, Logits::kLast);
  }
  auto limit =
      static_cast<size_t>(scores_prompt() ? std::min(chunk, kScored) : chunk);
  if (!resume_points_.empty()) {
    limit =
        std::min(limit, static_cast<size_t>(resume_points_.front() - offset()));
  }
  const size_t length = std::min(left, limit);
  const auto piece = std::span(request_.prompt).last(left).first(length);
  const bool samples = length == left && request_.max_tokens > 0;
  if (samples && grammar_) {
    grammar_->start_mask();
  }
  if (scores_prompt()) {
    return row_of(piece, Logits::kAll);
  }
  return row_of(piece, samples ? Logits::kLast : Logits::kNone);
}

Row Sequence::row_of(std::span<const TokenId> tokens, Logits logits) {
  return {tokens, &kv_.state(), logits, request_.adapters.get()};
}

Status Sequence::accept(std::span<const float> logits, Stopwatch& sampling) {
  const size_t prompt_length = request_.prompt.size();
  if (reported_ < prompt_length) {
    const size_t piece = prompt_length - prompt_left() - reported_;
    if (!resume_points_.empty() && resume_points_.front() == offset()) {
      kv_.keep_checkpoint();
      resume_points_.erase(resume_points_.begin());
    }
    INGLE_RETURN_IF_ERROR(report_piece(logits, piece));
    if (is_prefilling()) {
      return Status::ok();
    }
    start_decode_clock();
    if (request_.max_tokens == 0) {
      finished_ = FinishReason::kLength;
      return Status::ok();
    }
    if (scores_prompt()) {
      logits = logits.last(logits.size() / piece);
    }
  }
  return generate(logits, sampling);
}

Status Sequence::report_piece(std::span<const float> logits, size_t length) {
  PrefillStep step;
  if (scores_prompt()) {
    INGLE_ASSIGN_OR_RETURN(step.tokens, score(logits, length));
  }
  reported_ += length;
  step.total = stats_.prompt_tokens;
  step.cached = stats_.cached_tokens;
  step.processed = static_cast<int>(reported_);
  step.elapsed_ms = elapsed_ms();
  sink_->on_prefill(std::move(step));
  return Status::ok();
}

// The piece's tokens with their log-probabilities. Those of the first were left
// by the piece before; those of the token after it are kept for the next one.
Result<std::vector<GeneratedToken>> Sequence::score(
    std::span<const float> logits,
    size_t length) {
  const size_t vocabulary = logits.size() / length;
  const auto rest = std::span(request_.prompt).subspan(reported_ + 1);
  std::vector<GeneratedToken> tokens;
  for (size_t i = 0; i < length; ++i) {
    if (scored_) {
      tokens.push_back(*std::exchange(scored_, std::nullopt));
    }
    if (i < rest.size()) {
      INGLE_ASSIGN_OR_RETURN(
          scored_,
          with_logprobs(
              passes_,
              logits.subspan(i * vocabulary, vocabulary),
              rest[i],
              *request_.top_logprobs));
    }
  }
  return tokens;
}

Status Sequence::generate(std::span<const float> logits, Stopwatch& sampling) {
  std::vector<float> processed;
  INGLE_ASSIGN_OR_RETURN(const auto chosen, sampling.time([&] {
    return choose(logits, processed);
  }));
  if (!chosen) {
    finished_ = FinishReason::kStop;
    return Status::ok();
  }
  const TokenId token = *chosen;
  processors_.push(token);
  tokens_.push_back(token);
  stats_.generated_tokens = static_cast<int>(generated());
  if (ends_sequence(token)) {
    finished_ = FinishReason::kStop;
    return Status::ok();
  }
  if (grammar_) {
    INGLE_RETURN_IF_ERROR(grammar_->accept(token));
  }
  GeneratedToken generated{token, 0, {}};
  if (request_.top_logprobs) {
    INGLE_ASSIGN_OR_RETURN(
        generated,
        with_logprobs(passes_, logits, token, *request_.top_logprobs));
  }
  INGLE_RETURN_IF_ERROR(emit(std::move(generated)));
  if (text_.is_over() || (grammar_ && grammar_->has_ended())) {
    finished_ = FinishReason::kStop;
  } else if (stats_.generated_tokens >= request_.max_tokens) {
    finished_ = FinishReason::kLength;
  }
  return Status::ok();
}

// The next token; nothing where the grammar leaves none. `logits` become those
// of which log-probabilities are taken, in `processed` where they change.
Result<std::optional<TokenId>> Sequence::choose(
    std::span<const float>& logits,
    std::vector<float>& processed) {
  if (processors_.is_active()) {
    processed.assign(logits.begin(), logits.end());
    processors_.apply(processed);
    logits = processed;
  }
  std::span<const float> allowed = logits;
  std::vector<float> masked;
  if (grammar_) {
    masked.assign(logits.begin(), logits.end());
    const auto never = request_.ignore_eos
        ? std::span<const TokenId>(model_->eos)
        : std::span<const TokenId>();
    INGLE_ASSIGN_OR_RETURN(const bool goes_on, grammar_->apply(masked, never));
    if (!goes_on) {
      return std::optional<TokenId>();
    }
    allowed = masked;
  }
  INGLE_ASSIGN_OR_RETURN(
      const TokenId token,
      sample(
          passes_,
          allowed,
          request_.sampling,
          model_->xtc_exempt,
          seed_,
          generated()));
  return std::optional(token);
}

bool Sequence::ends_sequence(TokenId token) const {
  return !request_.ignore_eos &&
      std::count(model_->eos.begin(), model_->eos.end(), token) != 0;
}

Status Sequence::emit(GeneratedToken token) {
  GenerationDelta delta;
  const bool may_stop = stats_.generated_tokens > request_.min_tokens;
  INGLE_RETURN_IF_ERROR(text_.push(token.id, may_stop, delta));
  stats_.reasoning_tokens = text_.reasoning_tokens();
  delta.tokens.push_back(std::move(token));
  sink_->on_delta(std::move(delta));
  return Status::ok();
}

void Sequence::start_decode_clock() {
  stats_.prefill_ms = elapsed_ms();
  phase_start_ = clock_.now();
}

double Sequence::elapsed_ms() const {
  return Milliseconds(clock_.now() - phase_start_).count();
}

void Sequence::report_end() {
  if (generated() > 0) {
    stats_.decode_ms = elapsed_ms();
  }
  if (*finished_ != FinishReason::kCancelled) {
    GenerationDelta rest = text_.flush();
    if (rest.has_text()) {
      sink_->on_delta(std::move(rest));
    }
    if (text_.has_calls()) {
      finished_ = FinishReason::kToolCalls;
    } else if (text_.is_over()) {
      finished_ = FinishReason::kStop; // in what was held back
    }
  }
  sink_->on_end({Status::ok(), *finished_, stats_});
}

void Sequence::report_failure(Status status) {
  sink_->on_end({std::move(status), FinishReason::kStop, stats_});
}

std::vector<TokenId> Sequence::cache_tokens() const {
  return {tokens_.begin(), tokens_.begin() + offset()};
}

} // namespace ingle
