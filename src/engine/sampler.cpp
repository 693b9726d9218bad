#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/truncation.h"

namespace ingle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kImpossible = -9999; // log-probability of what can't come

constexpr size_t kBlock = 1024; // logits

// The largest of a block. A NaN or +inf in it clears `is_sound`.
float block_peak(std::span<const float> block, bool& is_sound) {
  // Lanes, because a compiler may not reorder a float maximum.
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> peaks;
  std::array<int, kLanes> sound;
  peaks.fill(-kInfinity);
  sound.fill(1);
  size_t i = 0;
  for (; i + kLanes <= block.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = block[i + lane];
      peaks[lane] = logit > peaks[lane] ? logit : peaks[lane];
      sound[lane] &= logit < kInfinity; // NaN isn't
    }
  }
  for (; i < block.size(); ++i) {
    peaks[0] = std::max(peaks[0], block[i]);
    sound[0] &= block[i] < kInfinity;
  }
  is_sound &= std::count(sound.begin(), sound.end(), 0) == 0;
  return *std::max_element(peaks.begin(), peaks.end());
}

// The first of the largest logits.
Result<TokenId> find_best(std::span<const float> logits) {
  float peak = -kInfinity;
  size_t peak_begin = 0; // of the first block that has it
  bool is_sound = true;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const float found = block_peak(
        logits.subspan(begin, std::min(kBlock, logits.size() - begin)),
        is_sound);
    if (found > peak) {
      peak = found;
      peak_begin = begin;
    }
  }
  if (!is_sound || peak == -kInfinity) {
    return Status::internal("the model's logits are not numbers");
  }
  const auto from_block = logits.subspan(peak_begin);
  return static_cast<TokenId>(
      std::find(from_block.begin(), from_block.end(), peak) - logits.begin());
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

float survivors_peak(std::span<const float> logits, const Survivors& in) {
  float peak = -kInfinity;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > peak && in.contains(logits[i], static_cast<TokenId>(i))) {
      peak = logits[i];
    }
  }
  return peak;
}

// `uniform` in [0, 1) picks a survivor by softmax(logits / temperature).
TokenId draw(
    std::span<const float> logits,
    const Survivors& survivors,
    float peak,
    float temperature,
    double uniform) {
  const auto add_weight = [&](double sum, size_t i) {
    return survivors.contains(logits[i], static_cast<TokenId>(i))
        ? sum + static_cast<double>(std::exp((logits[i] - peak) / temperature))
        : sum;
  };
  std::vector<double> sums; // up to the end of each block
  double sum = 0;
  for (size_t i = 0; i < logits.size();) {
    for (const size_t end = std::min(i + kBlock, logits.size()); i < end; ++i) {
      sum = add_weight(sum, i);
    }
    sums.push_back(sum);
  }
  const double target = uniform * sum;
  const auto block = static_cast<size_t>(
      std::upper_bound(sums.begin(), sums.end(), target) - sums.begin());
  // The same additions again: the block's last sum exceeds the target, and the
  // first that does has added a survivor.
  sum = block == 0 ? 0 : sums[block - 1];
  size_t i = block * kBlock;
  while ((sum = add_weight(sum, i)) <= target) {
    ++i;
  }
  return static_cast<TokenId>(i);
}

} // namespace

Result<TokenId> sample(
    std::span<const float> logits,
    const SamplingParams& params,
    std::span<const TokenId> xtc_exempt,
    uint64_t seed,
    uint64_t step) {
  INGLE_ASSIGN_OR_RETURN(const TokenId best, find_best(logits));
  if (params.temperature <= 0) {
    return best;
  }
  StepRandom random(seed, step);
  const bool xtc_acts = params.xtc_probability > 0 &&
      random.next() <= static_cast<double>(params.xtc_probability);
  float peak = logits[static_cast<size_t>(best)];
  const Survivors survivors =
      truncate(logits, peak, params, xtc_acts, xtc_exempt);
  if (xtc_acts) {
    peak = survivors_peak(logits, survivors);
  }
  return draw(logits, survivors, peak, params.temperature, random.next());
}

Result<GeneratedToken>
with_logprobs(std::span<const float> logits, TokenId chosen, int count) {
  INGLE_ASSIGN_OR_RETURN(const TokenId best, find_best(logits));
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
