#include "engine/sequence.h"

#include <algorithm>

#include "engine/sampler.h"

namespace ingle {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

} // namespace

Sequence::Sequence(
    GenerationId id,
    GenerationRequest request,
    uint64_t seed,
    std::shared_ptr<GenerationSink> sink,
    KvState kv,
    std::shared_ptr<const ServedModel> model,
    const Clock& clock)
    : id_(id),
      request_(std::move(request)),
      seed_(seed),
      sink_(std::move(sink)),
      model_(std::move(model)),
      clock_(clock),
      kv_(std::move(kv)),
      stop_(request_.stop),
      phase_start_(clock.now()) {
  if (model_->tokenizer) {
    decoder_.emplace(model_->tokenizer);
  }
  stats_.prompt_tokens = static_cast<int>(request_.prompt.size());
  stats_.cached_tokens = static_cast<int>(kv_.offset());
}

size_t Sequence::prompt_left() const {
  const auto held = static_cast<size_t>(kv_.offset());
  return request_.prompt.size() - std::min(held, request_.prompt.size());
}

std::span<const TokenId> Sequence::next_tokens(int chunk) const {
  const size_t left = prompt_left();
  if (left == 0) {
    return {&generated_.back(), 1};
  }
  const size_t size = std::min(left, static_cast<size_t>(chunk));
  return std::span(request_.prompt).last(left).first(size);
}

bool Sequence::wants_logits(int chunk) const {
  return prompt_left() <= static_cast<size_t>(chunk);
}

Status Sequence::accept(std::span<const float> logits) {
  const uint64_t step = generated_.size();
  INGLE_ASSIGN_OR_RETURN(
      const TokenId token, sample(logits, request_.sampling, seed_, step));
  generated_.push_back(token);
  stats_.generated_tokens = static_cast<int>(generated_.size());
  if (step == 0) {
    start_decode_clock();
  }
  if (ends_sequence(token)) {
    finished_ = FinishReason::kStop;
    return Status::ok();
  }
  INGLE_RETURN_IF_ERROR(emit(
      request_.top_logprobs
          ? with_logprobs(logits, token, *request_.top_logprobs)
          : GeneratedToken{token, 0, {}}));
  if (stop_.stopped()) {
    finished_ = FinishReason::kStop;
  } else if (stats_.generated_tokens >= request_.max_tokens) {
    finished_ = FinishReason::kLength;
  }
  return Status::ok();
}

bool Sequence::ends_sequence(TokenId token) const {
  return !request_.ignore_eos &&
      std::count(model_->eos.begin(), model_->eos.end(), token) != 0;
}

Status Sequence::emit(GeneratedToken token) {
  GenerationDelta delta;
  // Embeddings are padded to round sizes: such ids have no text.
  if (decoder_ && model_->tokenizer->id_to_token(token.id)) {
    INGLE_ASSIGN_OR_RETURN(const std::string text, decoder_->push(token.id));
    delta.text = stop_.push(text);
  }
  delta.tokens.push_back(std::move(token));
  sink_->on_delta(std::move(delta));
  return Status::ok();
}

void Sequence::start_decode_clock() {
  const auto now = clock_.now();
  stats_.prefill_ms = Milliseconds(now - phase_start_).count();
  phase_start_ = now;
}

void Sequence::report_end() {
  if (!generated_.empty()) {
    stats_.decode_ms = Milliseconds(clock_.now() - phase_start_).count();
  }
  std::string rest = stop_.flush();
  if (!rest.empty() && *finished_ != FinishReason::kCancelled) {
    sink_->on_delta({{}, std::move(rest)});
  }
  sink_->on_end({Status::ok(), *finished_, stats_});
}

void Sequence::report_failure(Status status) {
  sink_->on_end({std::move(status), FinishReason::kStop, stats_});
}

std::vector<TokenId> Sequence::cache_tokens() const {
  const auto held = static_cast<size_t>(kv_.offset());
  const size_t of_prompt = std::min(held, request_.prompt.size());
  std::vector<TokenId> tokens(
      request_.prompt.begin(),
      request_.prompt.begin() + static_cast<std::ptrdiff_t>(of_prompt));
  tokens.insert(
      tokens.end(),
      generated_.begin(),
      generated_.begin() + static_cast<std::ptrdiff_t>(held - of_prompt));
  return tokens;
}

} // namespace ingle
