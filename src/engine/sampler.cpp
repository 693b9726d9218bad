#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/truncation.h"

namespace ingle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kImpossible = -9999; // log-probability of what can't come

Result<TokenId> find_best(
    const LogitPasses& passes,
    std::span<const float> logits) {
  const auto best = passes.first_of_largest(logits);
  if (!best) {
    return Status::internal("the model's logits are not numbers");
  }
  return static_cast<TokenId>(*best);
}

// SplitMix64's finaliser (Steele et al., 2014).
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// The draws of one step: numbers in [0, 1).
class StepRandom {
 public:
  StepRandom(uint64_t seed, uint64_t step)
      : state_(seed ^ ((step + 1) * 0x9E3779B97F4A7C15u)) {}

  double next() {
    const uint64_t bits = mix(state_);
    // The next state is not that of a neighbouring step.
    state_ = mix(bits ^ 0xD1B54A32D192ED03u);
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
  }

 private:
  uint64_t state_;
};

// The first one whose weight, added to those before it, exceeds the target; the
// last one of a weight where rounding has left the target too large.
size_t find_target(const std::vector<double>& weights, double target) {
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    last = weights[i] > 0 ? i : last;
    if (sum > target) {
      return i;
    }
  }
  return last;
}

double weight_of(float logit, float peak, float temperature) {
  return std::exp(
      static_cast<double>(logit - peak) / static_cast<double>(temperature));
}

// `uniform` in [0, 1) picks a survivor by softmax(logits / temperature).
// Requires: they are those of at least their last one's logit.
TokenId draw_from_floor(
    const LogitPasses& passes,
    std::span<const float> logits,
    const Survivors& survivors,
    float peak,
    float temperature,
    double uniform) {
  constexpr size_t kBlock = LogitPasses::kBlock;
  const float floor = survivors.last.logit;
  const auto sums = passes.sums_of_blocks(logits, peak, 1 / temperature, floor);
  double target = uniform * std::accumulate(sums.begin(), sums.end(), 0.0);
  const size_t block = find_target(sums, target);
  target -= std::accumulate(
      sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(block), 0.0);
  const auto rest = logits.subspan(block * kBlock);
  std::vector<double> weights;
  for (const float logit : rest.first(std::min(kBlock, rest.size()))) {
    weights.push_back(logit >= floor ? weight_of(logit, peak, temperature) : 0);
  }
  // The block's sum was made in f32: a target near its end is not to end up
  // behind all that has a weight.
  target *= std::accumulate(weights.begin(), weights.end(), 0.0) / sums[block];
  return static_cast<TokenId>(block * kBlock + find_target(weights, target));
}

// The same among `candidates`, in their order.
TokenId draw_of(
    const std::vector<Candidate>& candidates,
    float temperature,
    double uniform) {
  const float peak =
      std::min_element(candidates.begin(), candidates.end(), precedes)->logit;
  std::vector<double> weights;
  for (const Candidate& candidate : candidates) {
    weights.push_back(weight_of(candidate.logit, peak, temperature));
  }
  const double target =
      uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  return candidates[find_target(weights, target)].id;
}

TokenId draw(
    const LogitPasses& passes,
    std::span<const float> logits,
    const Survivors& survivors,
    float peak,
    float temperature,
    double uniform) {
  return survivors.have_a_floor(logits)
      ? draw_from_floor(passes, logits, survivors, peak, temperature, uniform)
      : draw_of(survivors.list(passes, logits), temperature, uniform);
}

// Of this there is no quotient left to draw by: the largest logit it is.
bool is_cold(float temperature) {
  constexpr float kColdest = 1e-30f;
  return temperature < kColdest;
}

// How many equals of the token come before it.
std::ptrdiff_t equals_before(
    std::span<const float> logits,
    const Candidate& token) {
  return std::count(logits.begin(), logits.begin() + token.id, token.logit);
}

// True iff less than top_p of the mass stands before the token in the order of
// likelihood.
bool is_in_nucleus(
    const LogitPasses& passes,
    std::span<const float> logits,
    float peak,
    float top_p,
    const Candidate& token) {
  const float floors[kFloors] = {
      std::numeric_limits<float>::lowest(),
      token.logit,
      std::nextafter(token.logit, kInfinity)};
  const auto sums = passes.exp_sums(logits, peak, floors);
  const double nucleus = static_cast<double>(top_p) * sums[0];
  const double above = sums[2];
  const double own = weight_of(token.logit, peak, 1);
  if (above >= nucleus || sums[1] - own < nucleus) {
    return above < nucleus;
  }
  return above + own * static_cast<double>(equals_before(logits, token)) <
      nucleus;
}

// A draw among what `survivors`, those up to one in the order of likelihood,
// and top_p leave. A token is drawn without regard to top_p; if it turns out
// not to be in the nucleus, it is out with all that come after it, and another
// one is drawn. So the end of the nucleus need not be known.
TokenId draw_from_nucleus(
    const LogitPasses& passes,
    std::span<const float> logits,
    Survivors survivors,
    float peak,
    const SamplingParams& params,
    StepRandom& random) {
  for (;;) {
    const TokenId id = draw(
        passes, logits, survivors, peak, params.temperature, random.next());
    const Candidate token{logits[static_cast<size_t>(id)], id};
    if (is_in_nucleus(passes, logits, peak, params.top_p, token)) {
      return id;
    }
    if (equals_before(logits, token) > 0) {
      survivors.last = {token.logit, id - 1};
    } else {
      survivors.last.logit = std::nextafter(token.logit, kInfinity);
      survivors.last.id = std::numeric_limits<TokenId>::max();
    }
  }
}

} // namespace

Result<TokenId> sample(
    const LogitPasses& passes,
    std::span<const float> logits,
    const SamplingParams& params,
    std::span<const TokenId> xtc_exempt,
    uint64_t seed,
    uint64_t step) {
  INGLE_ASSIGN_OR_RETURN(const TokenId best, find_best(passes, logits));
  if (is_cold(params.temperature)) {
    return best;
  }
  StepRandom random(seed, step);
  const bool xtc_acts = params.xtc_probability > 0 &&
      random.next() <= static_cast<double>(params.xtc_probability);
  const float peak = logits[static_cast<size_t>(best)];
  if (has_top_p(params) && !xtc_acts) {
    // The other steps cut at one place of the order, as top_p does: it may come
    // after them.
    const Survivors survivors =
        truncate_without_top_p(logits, peak, params, false, {}, {});
    return draw_from_nucleus(passes, logits, survivors, peak, params, random);
  }
  const Survivors survivors =
      truncate(passes, logits, peak, params, xtc_acts, xtc_exempt);
  return draw(
      passes, logits, survivors, peak, params.temperature, random.next());
}

Result<GeneratedToken> with_logprobs(
    const LogitPasses& passes,
    std::span<const float> logits,
    TokenId chosen,
    int count) {
  INGLE_ASSIGN_OR_RETURN(const TokenId best, find_best(passes, logits));
  const float peak = logits[static_cast<size_t>(best)];
  const double log_sum = std::log(passes.exp_sum(logits, peak)) + peak;
  const auto logprob = [&](float logit) {
    return std::isinf(logit) ? kImpossible
                             : static_cast<float>(logit - log_sum);
  };
  GeneratedToken token{
      chosen, logprob(logits[static_cast<size_t>(chosen)]), {}};
  for (const Candidate& likely :
       most_likely(logits, static_cast<size_t>(count))) {
    token.top.push_back({likely.id, logprob(likely.logit)});
  }
  return token;
}

} // namespace ingle
