// Which tokens a draw is made among: top_p, min_p, XTC and top_k.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "base/token.h"
#include "engine/generator.h"
#include "kernels/logits.h"

namespace ingle {

struct Candidate {
  float logit = 0;
  TokenId id = 0;

  bool operator==(const Candidate&) const = default;
};

// The order of likelihood: the higher logit, and of equals the lower id, comes
// first. Whatever is cut is cut in this order: no tie is left to chance.
inline bool precedes(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// The first `count` tokens in the order of likelihood, or all of them. Those
// of logit -inf come last, but they count.
//
// Cost: one comparison per logit and little more: a bounded buffer holds what
//       can still be among them.
std::vector<Candidate> most_likely(std::span<const float> logits, size_t count);

// A set of tokens: those up to one in the order of likelihood, but for what XTC
// removed. Tokens of logit -inf are in no set.
struct Survivors {
  Candidate last{
      std::numeric_limits<float>::lowest(),
      std::numeric_limits<TokenId>::max()};
  // Tokens above it are out, unless they are exempt.
  float ceiling = std::numeric_limits<float>::infinity();
  std::span<const TokenId> exempt;

  // True iff they are all tokens of at least the last one's logit: no equal of
  // it, nor anything above it was cut.
  bool have_a_floor(std::span<const float> logits) const {
    return ceiling == std::numeric_limits<float>::infinity() &&
        (last.id == std::numeric_limits<TokenId>::max() ||
         std::count(logits.begin() + last.id + 1, logits.end(), last.logit) ==
             0);
  }
  // By id.
  std::vector<Candidate> list(
      const LogitPasses& passes,
      std::span<const float> logits) const;

  bool contains(float logit, TokenId id) const {
    return logit >= last.logit && (logit > last.logit || id <= last.id) &&
        (logit <= ceiling ||
         std::find(exempt.begin(), exempt.end(), id) != exempt.end());
  }
};

// What the four steps leave. Probabilities are those at temperature 1 over the
// whole vocabulary, but for XTC's.
//
// top_p keeps tokens in the order of likelihood until what stands before one
// holds p of the mass; that is the ascending order from where its sum exceeds
// 1 - p. min_p removes what is less likely than min_p times the most likely
// token, but leaves the first min_tokens_to_keep of what came to it. XTC, if it
// acts, takes the probabilities of what is left by then and removes every token
// more likely than the least likely of those above xtc_threshold; `xtc_exempt`
// stay. top_k keeps the first k.
//
// Cost:     one exp per logit with top_p, one for what is left with XTC; a few
//           comparisons per logit. No sort.
// Lifetime: `xtc_exempt` outlives what is returned.
// Requires: `peak` is the largest logit and finite; no NaN; checked parameters.
Survivors truncate(
    const LogitPasses& passes,
    std::span<const float> logits,
    float peak,
    const SamplingParams& params,
    bool xtc_acts,
    std::span<const TokenId> xtc_exempt);

// What its other three steps leave of `survivors`.
Survivors truncate_without_top_p(
    std::span<const float> logits,
    float peak,
    const SamplingParams& params,
    bool xtc_acts,
    std::span<const TokenId> xtc_exempt,
    Survivors survivors);

inline bool has_top_p(const SamplingParams& params) {
  return params.top_p > 0 && params.top_p < 1;
}

} // namespace ingle
