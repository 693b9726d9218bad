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

constexpr size_t kBlock = 256; // logits

// The first of the largest logits.
Result<TokenId> find_best(
    const KernelSet& kernels,
    std::span<const float> logits) {
  bool is_sound = true;
  const float peak =
      kernels.largest(logits.data(), static_cast<int>(logits.size()), is_sound);
  if (!is_sound || peak == -kInfinity) {
    return Status::internal("the model's logits are not numbers");
  }
  return static_cast<TokenId>(
      std::find(logits.begin(), logits.end(), peak) - logits.begin());
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
template <typename Weight>
size_t find_target(size_t count, double target, Weight&& weight) {
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const double each = weight(i);
    sum += each;
    last = each > 0 ? i : last;
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
    const KernelSet& kernels,
    std::span<const float> logits,
    const Survivors& survivors,
    float peak,
    float temperature,
    double uniform) {
  const float floor = survivors.last.logit;
  std::vector<double> sums; // of blocks
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const auto block =
        logits.subspan(begin, std::min(kBlock, logits.size() - begin));
    sums.push_back(kernels.exp_sum(
        block.data(),
        static_cast<int>(block.size()),
        peak,
        1 / temperature,
        floor));
  }
  double target = uniform * std::accumulate(sums.begin(), sums.end(), 0.0);
  const size_t block =
      find_target(sums.size(), target, [&](size_t i) { return sums[i]; });
  target -= std::accumulate(
      sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(block), 0.0);
  const auto rest = logits.subspan(block * kBlock);
  const size_t in_block =
      find_target(std::min(kBlock, rest.size()), target, [&](size_t i) {
        return rest[i] >= floor ? weight_of(rest[i], peak, temperature) : 0;
      });
  return static_cast<TokenId>(block * kBlock + in_block);
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
  return candidates[find_target(
                        weights.size(),
                        target,
                        [&](size_t i) { return weights[i]; })]
      .id;
}

} // namespace

Result<TokenId> sample(
    const KernelSet& kernels,
    std::span<const float> logits,
    const SamplingParams& params,
    std::span<const TokenId> xtc_exempt,
    uint64_t seed,
    uint64_t step) {
  INGLE_ASSIGN_OR_RETURN(const TokenId best, find_best(kernels, logits));
  if (params.temperature <= 0) {
    return best;
  }
  StepRandom random(seed, step);
  const bool xtc_acts = params.xtc_probability > 0 &&
      random.next() <= static_cast<double>(params.xtc_probability);
  const float peak = logits[static_cast<size_t>(best)];
  const Survivors survivors =
      truncate(kernels, logits, peak, params, xtc_acts, xtc_exempt);
  return survivors.have_a_floor(logits)
      ? draw_from_floor(
            kernels, logits, survivors, peak, params.temperature, random.next())
      : draw_of(
            survivors.list(kernels, logits), params.temperature, random.next());
}

Result<GeneratedToken> with_logprobs(
    const KernelSet& kernels,
    std::span<const float> logits,
    TokenId chosen,
    int count) {
  INGLE_ASSIGN_OR_RETURN(const TokenId best, find_best(kernels, logits));
  const float peak = logits[static_cast<size_t>(best)];
  const double log_sum = std::log(exp_sum(logits, peak)) + peak;
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
