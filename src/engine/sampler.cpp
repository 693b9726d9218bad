#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ingle {
namespace {

// The first `count` ids in the order of falling logits, lower ids first among
// equals.
std::vector<TokenId> most_likely(std::span<const float> logits, size_t count) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  count = std::min(count, ids.size());
  const auto precedes = [&](TokenId a, TokenId b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < ids.size()) {
    std::nth_element(ids.begin(), middle, ids.end(), precedes);
  }
  std::sort(ids.begin(), middle, precedes);
  ids.resize(count);
  return ids;
}

// Σ exp(logit - peak).
double exp_sum(std::span<const float> logits, float peak) {
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit - peak));
  }
  return sum;
}

// What top_p keeps, most likely first.
std::vector<TokenId>
nucleus(std::span<const float> logits, float peak, double top_p) {
  const double limit = top_p * exp_sum(logits, peak);
  // The nucleus is nearly always small: look at few, and at more if it isn't.
  for (size_t count = 64;; count *= 8) {
    std::vector<TokenId> ids = most_likely(logits, count);
    double before = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (before >= limit) {
        ids.resize(i);
        return ids;
      }
      before += std::exp(
          static_cast<double>(logits[static_cast<size_t>(ids[i])] - peak));
    }
    if (ids.size() == logits.size()) {
      return ids;
    }
  }
}

std::vector<TokenId> candidates(
    std::span<const float> logits,
    float peak,
    const SamplingParams& params) {
  const auto top_k = static_cast<size_t>(std::max(params.top_k, 0));
  if (params.top_p > 0 && params.top_p < 1) {
    std::vector<TokenId> ids =
        nucleus(logits, peak, static_cast<double>(params.top_p));
    if (top_k > 0 && top_k < ids.size()) {
      ids.resize(top_k);
    }
    return ids;
  }
  if (top_k > 0 && top_k < logits.size()) {
    return most_likely(logits, top_k);
  }
  std::vector<TokenId> all(logits.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// A number in [0, 1) for a seed and a step: splitmix64 (Steele et al., 2014).
double uniform(uint64_t seed, uint64_t step) {
  uint64_t z = seed ^ ((step + 1) * 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

} // namespace

Result<TokenId> sample(
    std::span<const float> logits,
    const SamplingParams& params,
    uint64_t seed,
    uint64_t step) {
  const auto best = std::max_element(logits.begin(), logits.end());
  const bool broken =
      std::any_of(logits.begin(), logits.end(), [](float logit) {
        return std::isnan(logit);
      });
  if (broken || best == logits.end() || !std::isfinite(*best)) {
    return Status::internal("the model's logits are not numbers");
  }
  if (params.temperature <= 0) {
    return static_cast<TokenId>(best - logits.begin());
  }
  const float peak = *best;
  const std::vector<TokenId> ids = candidates(logits, peak, params);
  std::vector<double> sums(ids.size()); // running
  double sum = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const float distance = logits[static_cast<size_t>(ids[i])] - peak;
    sum += std::exp(static_cast<double>(distance / params.temperature));
    sums[i] = sum;
  }
  const auto drawn =
      std::upper_bound(sums.begin(), sums.end(), uniform(seed, step) * sum);
  return ids[static_cast<size_t>(
      std::min(drawn - sums.begin(), std::ssize(sums) - 1))];
}

GeneratedToken
with_logprobs(std::span<const float> logits, TokenId chosen, int count) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  const double log_sum = std::log(exp_sum(logits, peak)) + peak;
  const auto logprob = [&](TokenId id) {
    return static_cast<float>(logits[static_cast<size_t>(id)] - log_sum);
  };
  GeneratedToken token{chosen, logprob(chosen), {}};
  for (const TokenId id :
       most_likely(logits, static_cast<size_t>(std::max(count, 0)))) {
    token.top.push_back({id, logprob(id)});
  }
  return token;
}

} // namespace ingle
