#include "engine/truncation.h"

#include <array>
#include <cmath>

namespace ingle {
namespace {

// A token's probability, times a factor that all tokens share.
double weight(float logit, float peak) {
  return static_cast<double>(std::exp(logit - peak));
}

// Leaves the `count` first in the order of likelihood, in no order.
// Requires: 0 < count <= candidates.size(). Returns the last of them.
Candidate cut(std::vector<Candidate>& candidates, size_t count) {
  const auto last = candidates.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(candidates.begin(), last, candidates.end(), precedes);
  candidates.resize(count);
  return candidates.back();
}

// The first `count` of those that `is_in(logit, id)`, in no order.
template <typename IsIn>
std::vector<Candidate>
first_of(std::span<const float> logits, size_t count, IsIn is_in) {
  std::vector<Candidate> best;
  if (count == 0) {
    return best;
  }
  const size_t room = count + std::max<size_t>(count, 256);
  bool is_full = false;
  float floor = 0; // once full: the last one's logit, at the last cut
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    // An equal comes after what is in, as its id is higher.
    if ((is_full && !(logits[i] > floor)) || !is_in(logits[i], id)) {
      continue;
    }
    best.push_back({logits[i], id});
    if (best.size() == (is_full ? room : count)) {
      floor = cut(best, count).logit;
      is_full = true;
    }
  }
  if (is_full) {
    cut(best, count);
  }
  return best;
}

Candidate last_of(const std::vector<Candidate>& candidates) {
  return *std::max_element(candidates.begin(), candidates.end(), precedes);
}

void cut_after(Survivors& survivors, const Candidate& last) {
  if (precedes(last, survivors.last)) {
    survivors.last = last;
  }
}

// The last candidate that has less than `mass` before it: a quickselect by
// weight. Requires: there is one.
Candidate
select_by_mass(std::vector<Candidate> candidates, float peak, double mass) {
  double before = 0;
  auto begin = candidates.begin();
  auto end = candidates.end();
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, precedes);
    double before_middle = before;
    for (auto it = begin; it != middle; ++it) {
      before_middle += weight(it->logit, peak);
    }
    if (before_middle < mass) {
      begin = middle;
      before = before_middle;
    } else {
      end = middle;
    }
  }
  return *begin;
}

// Those in [low, high), by id.
std::vector<Candidate> between(
    const LogitPasses& passes,
    std::span<const float> logits,
    float low,
    float high) {
  std::vector<Candidate> candidates;
  for (const int32_t i : passes.find_between(logits, low, high)) {
    candidates.push_back({logits[static_cast<size_t>(i)], i});
  }
  return candidates;
}

// The last token of what top_p keeps. It is looked for among the few that are
// near the most likely one, if they hold enough.
Candidate end_of_nucleus(
    const LogitPasses& passes,
    std::span<const float> logits,
    float peak,
    float top_p) {
  const std::array<float, kFloors> floors = {
      std::numeric_limits<float>::lowest(), peak - 16, peak - 8};
  const auto sums = passes.exp_sums(logits, peak, floors);
  const double nucleus = static_cast<double>(top_p) * sums[0];
  const float low = sums[2] >= nucleus ? floors[2]
      : sums[1] >= nucleus             ? floors[1]
                                       : floors[0];
  return select_by_mass(
      between(passes, logits, low, std::numeric_limits<float>::infinity()),
      peak,
      nucleus);
}

// The smallest float that is not below `value`.
float float_from(double value) {
  const auto nearest = static_cast<float>(value);
  return static_cast<double>(nearest) < value
      ? std::nextafter(nearest, std::numeric_limits<float>::infinity())
      : nearest;
}

void apply_min_p(
    Survivors& survivors,
    std::span<const float> logits,
    float peak,
    const SamplingParams& params) {
  Candidate last{
      float_from(peak + std::log(static_cast<double>(params.min_p))),
      std::numeric_limits<TokenId>::max()};
  if (params.min_tokens_to_keep > 1) {
    const Candidate kept = last_of(
        most_likely(logits, static_cast<size_t>(params.min_tokens_to_keep)));
    last = precedes(last, kept) ? kept : last;
  }
  cut_after(survivors, last);
}

void apply_xtc(
    Survivors& survivors,
    std::span<const float> logits,
    float peak,
    float threshold,
    std::span<const TokenId> exempt) {
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (survivors.contains(logits[i], static_cast<TokenId>(i))) {
      total += weight(logits[i], peak);
    }
  }
  // Of a probability above the threshold.
  const double bar = peak + std::log(static_cast<double>(threshold) * total);
  float least = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (static_cast<double>(logits[i]) > bar &&
        survivors.contains(logits[i], static_cast<TokenId>(i))) {
      least = std::min(least, logits[i]);
    }
  }
  survivors.ceiling = least;
  survivors.exempt = exempt;
}

} // namespace

std::vector<Candidate> most_likely(
    std::span<const float> logits,
    size_t count) {
  std::vector<Candidate> best =
      first_of(logits, count, [](float, TokenId) { return true; });
  std::sort(best.begin(), best.end(), precedes);
  return best;
}

std::vector<Candidate> Survivors::list(
    const LogitPasses& passes,
    std::span<const float> logits) const {
  auto candidates = between(
      passes, logits, last.logit, std::numeric_limits<float>::infinity());
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return !contains(candidate.logit, candidate.id);
  });
  return candidates;
}

Survivors truncate(
    const LogitPasses& passes,
    std::span<const float> logits,
    float peak,
    const SamplingParams& params,
    bool xtc_acts,
    std::span<const TokenId> xtc_exempt) {
  Survivors survivors;
  if (has_top_p(params)) {
    cut_after(survivors, end_of_nucleus(passes, logits, peak, params.top_p));
  }
  return truncate_without_top_p(
      logits, peak, params, xtc_acts, xtc_exempt, survivors);
}

Survivors truncate_without_top_p(
    std::span<const float> logits,
    float peak,
    const SamplingParams& params,
    bool xtc_acts,
    std::span<const TokenId> xtc_exempt,
    Survivors survivors) {
  if (params.min_p > 0) {
    apply_min_p(survivors, logits, peak, params);
  }
  if (xtc_acts) {
    apply_xtc(survivors, logits, peak, params.xtc_threshold, xtc_exempt);
  }
  const auto top_k = static_cast<size_t>(params.top_k);
  if (top_k > 0 && top_k < logits.size()) {
    const auto is_in = [&](float logit, TokenId id) {
      return survivors.contains(logit, id);
    };
    cut_after(survivors, last_of(first_of(logits, top_k, is_in)));
  }
  return survivors;
}

} // namespace ingle
