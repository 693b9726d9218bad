#include "engine/logits_processors.h"

#include <algorithm>
#include <limits>

namespace ingle {

void TokenWindow::push(TokenId token) {
  ++counts_[token];
  if (size_ == 0) {
    return;
  }
  tokens_.push_back(token);
  if (tokens_.size() <= size_) {
    return;
  }
  const auto oldest = counts_.find(tokens_.front());
  tokens_.pop_front();
  if (--oldest->second == 0) {
    counts_.erase(oldest);
  }
}

std::optional<LogitsProcessors::Penalty> LogitsProcessors::make_penalty(
    bool is_on,
    float strength,
    int context,
    std::span<const TokenId> prompt) {
  if (!is_on) {
    return std::nullopt;
  }
  Penalty penalty{strength, TokenWindow(context)};
  const size_t seen = context == 0
      ? prompt.size()
      : std::min(prompt.size(), static_cast<size_t>(context));
  for (const TokenId token : prompt.last(seen)) {
    penalty.window.push(token);
  }
  return penalty;
}

LogitsProcessors::LogitsProcessors(
    const GenerationRequest& request,
    std::span<const TokenId> eos)
    : bias_(request.sampling.logit_bias),
      repetition_(make_penalty(
          request.sampling.repetition_penalty != 1 &&
              request.sampling.repetition_penalty != 0,
          request.sampling.repetition_penalty,
          request.sampling.repetition_context,
          request.prompt)),
      presence_(make_penalty(
          request.sampling.presence_penalty != 0,
          request.sampling.presence_penalty,
          request.sampling.presence_context,
          request.prompt)),
      frequency_(make_penalty(
          request.sampling.frequency_penalty != 0,
          request.sampling.frequency_penalty,
          request.sampling.frequency_context,
          request.prompt)),
      forbidden_(eos.begin(), eos.end()),
      forbidden_left_(
          request.ignore_eos || eos.empty() ? 0 : request.min_tokens) {}

bool LogitsProcessors::is_active() const {
  return !bias_.empty() || repetition_ || presence_ || frequency_ ||
      forbidden_left_ > 0;
}

void LogitsProcessors::apply(std::span<float> logits) const {
  const auto logit = [&](TokenId id) -> float& {
    return logits[static_cast<size_t>(id)];
  };
  for (const auto& [id, bias] : bias_) {
    logit(id) += bias;
  }
  if (repetition_) {
    const float penalty = repetition_->strength;
    for (const auto& [id, count] : repetition_->window.counts()) {
      float& value = logit(id);
      value = value < 0 ? value * penalty : value / penalty;
    }
  }
  if (presence_) {
    for (const auto& [id, count] : presence_->window.counts()) {
      logit(id) -= presence_->strength;
    }
  }
  if (frequency_) {
    for (const auto& [id, count] : frequency_->window.counts()) {
      logit(id) -= frequency_->strength * static_cast<float>(count);
    }
  }
  if (forbidden_left_ > 0) {
    for (const TokenId id : forbidden_) {
      logit(id) = -std::numeric_limits<float>::infinity();
    }
  }
}

void LogitsProcessors::push(TokenId token) {
  for (auto* penalty : {&repetition_, &presence_, &frequency_}) {
    if (*penalty) {
      (*penalty)->window.push(token);
    }
  }
  forbidden_left_ = std::max(0, forbidden_left_ - 1);
}

} // namespace ingle
