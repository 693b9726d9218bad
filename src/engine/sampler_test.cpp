#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "engine/default_seeds.h"
#include "engine/truncation.h"

namespace ingle {
namespace {

const KernelSet& kKernels = kernel_set(supported_isas().back());

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Probabilities 0.2, 0.4, 0.1, 0.3.
const std::vector<float> kLogits = {
    std::log(0.2f),
    std::log(0.4f),
    std::log(0.1f),
    std::log(0.3f)};

SamplingParams at_temperature(float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  return params;
}

std::map<TokenId, int>
counts(const SamplingParams& params, int draws = 2000, uint64_t seed = 42) {
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) {
    ++counts[*sample(
        kKernels, kLogits, params, {}, seed, static_cast<uint64_t>(i))];
  }
  return counts;
}

std::set<TokenId> drawn(const SamplingParams& params) {
  std::set<TokenId> ids;
  for (const auto& [id, count] : counts(params)) {
    ids.insert(id);
  }
  return ids;
}

// Acceptance 7.
TEST(Acceptance, greedy_ignores_truncation) {
  SamplingParams params;
  params.top_p = 0.1f;
  params.top_k = 3;
  params.min_p = 0.5f;
  params.xtc_probability = 1;
  params.seed = 7;
  EXPECT_EQ(drawn(params), std::set<TokenId>{1});
  // The lowest id of equals.
  EXPECT_EQ(
      *sample(kKernels, std::vector<float>{0, 2, 2}, params, {}, 1, 1), 1);
}

TEST(Sampler, TemperatureNextToNothingIsGreedy) {
  for (const float temperature : {1e-44f, 1e-40f, 3e-39f, 1e-31f, 1e-29f}) {
    SamplingParams params = at_temperature(temperature);
    EXPECT_EQ(drawn(params), std::set<TokenId>{1});
    params.top_p = 0.9f;
    EXPECT_EQ(drawn(params), std::set<TokenId>{1});
  }
}

// Acceptance 8.
TEST(Acceptance, topk1_is_greedy) {
  for (const float temperature : {0.001f, 0.1f, 1.0f, 5.0f, 1000.0f}) {
    SamplingParams params = at_temperature(temperature);
    params.top_k = 1;
    EXPECT_EQ(drawn(params), std::set<TokenId>{1});
  }
}

// The nucleus is never looked for: what is drawn is checked. Equals, small and
// large nuclei, and cuts of other kinds beside it.
TEST(Sampler, DrawsWithTopPAreThoseOfTheNucleusWithItsProbabilities) {
  std::mt19937 random(9);
  std::uniform_int_distribution<int> quarters(-12, 12);
  constexpr int kDraws = 3000;
  for (int round = 0; round < 40; ++round) {
    std::vector<float> logits(14);
    for (float& logit : logits) {
      logit = 0.25f * static_cast<float>(quarters(random));
    }
    SamplingParams params = at_temperature(round % 2 == 0 ? 0.7f : 3);
    params.top_p = std::array{0.05f, 0.5f, 0.8f, 0.99f}[round % 4];
    params.top_k = round % 5 == 0 ? 4 : 0;
    params.min_p = round % 3 == 0 ? 0.1f : 0;
    const float peak = *std::max_element(logits.begin(), logits.end());
    const auto left = truncate(kKernels, logits, peak, params, false, {})
                          .list(kKernels, logits);
    double total = 0;
    for (const Candidate& each : left) {
      total += std::exp((each.logit - peak) / params.temperature);
    }
    std::map<TokenId, int> drawn;
    for (int i = 0; i < kDraws; ++i) {
      ++drawn[*sample(
          kKernels,
          logits,
          params,
          {},
          static_cast<uint64_t>(round),
          static_cast<uint64_t>(i))];
    }
    int counted = 0;
    for (const Candidate& each : left) {
      const double share =
          std::exp((each.logit - peak) / params.temperature) / total;
      const double deviation = std::sqrt(kDraws * share * (1 - share));
      EXPECT_NEAR(drawn[each.id], kDraws * share, 5 * deviation + 1) << round;
      counted += drawn[each.id];
    }
    EXPECT_EQ(counted, kDraws) << round;
  }
}

// Acceptance 9.
TEST(Acceptance, seed_reproducible) {
  const SamplingParams params = at_temperature(1);
  const auto drawn_with = [&](uint64_t seed) {
    std::vector<TokenId> ids;
    for (uint64_t step = 0; step < 64; ++step) {
      ids.push_back(*sample(kKernels, kLogits, params, {}, seed, step));
    }
    return ids;
  };
  EXPECT_EQ(drawn_with(5), drawn_with(5));
  EXPECT_NE(drawn_with(5), drawn_with(6));

  DefaultSeeds seeds;
  std::set<uint64_t> of_one_millisecond;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t seed = seeds.next(std::chrono::milliseconds(1790000000000));
    EXPECT_LE(seed, std::numeric_limits<uint32_t>::max());
    of_one_millisecond.insert(seed);
  }
  EXPECT_EQ(of_one_millisecond.size(), 1000u);
}

// Acceptance 13, the other side of it.
TEST(Acceptance, xtc_prob0_untouched) {
  SamplingParams params = at_temperature(1);
  const auto expected = counts(params);
  params.xtc_threshold = 0.1f;
  EXPECT_EQ(counts(params), expected);
}

// Acceptance 14.
TEST(Acceptance, xtc_never_emits_culled) {
  SamplingParams params = at_temperature(1);
  params.xtc_probability = 1;
  params.xtc_threshold = 0.25f;
  EXPECT_EQ(drawn(params), (std::set<TokenId>{0, 2, 3}));
  params.top_p = 0.8f;
  EXPECT_EQ(drawn(params), (std::set<TokenId>{0, 3}));
}

TEST(Sampler, XtcActsAsOftenAsAskedAndDrawsIndependently) {
  SamplingParams params = at_temperature(1);
  params.xtc_probability = 0.25f;
  params.xtc_threshold = 0.35f; // acts without an effect: one candidate
  constexpr int kDraws = 20000;
  auto found = counts(params, kDraws);
  EXPECT_NEAR(found[1], 0.4 * kDraws, 0.015 * kDraws);
  EXPECT_NEAR(found[2], 0.1 * kDraws, 0.015 * kDraws);
  params.xtc_threshold = 0.25f; // token 1 is out where it acts
  found = counts(params, kDraws);
  EXPECT_NEAR(found[1], 0.75 * 0.4 * kDraws, 0.015 * kDraws);
  EXPECT_NEAR(
      found[3], (0.75 * 0.3 + 0.25 * 0.3 / 0.6) * kDraws, 0.015 * kDraws);
}

// Seed 0 and its steps in a row: where a step's second draw was the next one's
// first, tokens of neighbouring steps would be tied to each other.
TEST(Sampler, DrawsOfNeighbouringStepsAreIndependent) {
  SamplingParams params = at_temperature(1);
  params.xtc_probability = 0.5f;
  params.xtc_threshold = 0.25f;
  int both = 0;
  constexpr int kDraws = 20000;
  const auto is_top = [&](int step) {
    return *sample(
               kKernels, kLogits, params, {}, 0, static_cast<uint64_t>(step)) ==
        1;
  };
  for (int step = 0; step < kDraws; ++step) {
    both += is_top(step) && is_top(step + 1);
  }
  EXPECT_NEAR(both, 0.2 * 0.2 * kDraws, 0.006 * kDraws);
}

TEST(Sampler, DrawsFollowTheDistributionAtAnyTemperature) {
  constexpr int kDraws = 20000;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    auto found =
        counts(at_temperature(static_cast<float>(temperature)), kDraws, 9);
    double total = 0;
    for (const float logit : kLogits) {
      total += std::exp(static_cast<double>(logit) / temperature);
    }
    for (TokenId id = 0; id < 4; ++id) {
      const double logit =
          static_cast<double>(kLogits[static_cast<size_t>(id)]);
      const double expected = std::exp(logit / temperature) / total;
      EXPECT_NEAR(found[id], expected * kDraws, 0.015 * kDraws);
    }
  }
}

TEST(Sampler, DrawsReachEveryBlockOfALargeVocabulary) {
  std::vector<float> logits(5000, -kInfinity);
  const std::set<TokenId> possible = {0, 1023, 1024, 2500, 4999};
  for (const TokenId id : possible) {
    logits[static_cast<size_t>(id)] = 100;
  }
  std::set<TokenId> found;
  for (uint64_t step = 0; step < 500; ++step) {
    found.insert(*sample(kKernels, logits, at_temperature(1), {}, 3, step));
  }
  EXPECT_EQ(found, possible);
}

// Without its peak, what XTC leaves would underflow.
TEST(Sampler, XtcBelowAFarPeakStillDraws) {
  SamplingParams params = at_temperature(0.01f);
  params.xtc_probability = 1;
  params.xtc_threshold = 0.1f;
  const std::vector<float> logits = {2, 0, -1, -2};
  EXPECT_EQ(*sample(kKernels, logits, params, {}, 1, 1), 1);
  const TokenId exempt[] = {0};
  EXPECT_EQ(*sample(kKernels, logits, params, exempt, 1, 1), 0);
}

TEST(Sampler, BestIsTheFirstOfTheLargestWhereverItStands) {
  std::mt19937 random(1);
  for (const size_t size :
       {1u, 2u, 15u, 16u, 17u, 1023u, 1024u, 1025u, 3000u}) {
    for (int i = 0; i < 50; ++i) {
      std::vector<float> logits(size);
      for (float& logit : logits) {
        logit = static_cast<float>(random() % 5) - 7;
      }
      EXPECT_EQ(
          *sample(kKernels, logits, {}, {}, 0, 0),
          std::max_element(logits.begin(), logits.end()) - logits.begin());
    }
  }
}

TEST(Sampler, LogitsThatAreNotNumbersAreAnError) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> late_nan(3000, 0.0f);
  late_nan[2999] = nan;
  std::vector<float> early_nan(3000, 0.0f);
  early_nan[5] = nan;
  const std::vector<float> broken[] = {
      {},
      {nan, nan},
      {-kInfinity, -kInfinity},
      {0, kInfinity},
      {0, nan, 1},
      late_nan,
      early_nan};
  for (const auto& logits : broken) {
    EXPECT_FALSE(sample(kKernels, logits, {}, {}, 0, 0).is_ok());
    EXPECT_FALSE(sample(kKernels, logits, at_temperature(1), {}, 0, 0).is_ok());
    EXPECT_FALSE(with_logprobs(kKernels, logits, 0, 1).is_ok());
  }
  EXPECT_TRUE(sample(kKernels, std::vector<float>{0, -kInfinity}, {}, {}, 0, 0)
                  .is_ok());
}

TEST(Sampler, LogprobsAreOfTheWholeVocabularyAndSorted) {
  const GeneratedToken token = *with_logprobs(kKernels, kLogits, 2, 3);
  EXPECT_EQ(token.id, 2);
  EXPECT_NEAR(token.logprob, std::log(0.1), 1e-5);
  ASSERT_EQ(token.top.size(), 3u);
  EXPECT_EQ(token.top[0].id, 1);
  EXPECT_EQ(token.top[1].id, 3);
  EXPECT_EQ(token.top[2].id, 0);
  EXPECT_NEAR(token.top[0].logprob, std::log(0.4), 1e-5);
  EXPECT_EQ(with_logprobs(kKernels, kLogits, 2, 100)->top.size(), 4u);
  EXPECT_TRUE(with_logprobs(kKernels, kLogits, 2, 0)->top.empty());
}

TEST(Sampler, LogprobsOfAToplistEqualAFullSort) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    std::vector<float> logits(1 + random() % 3000);
    for (float& logit : logits) {
      logit = static_cast<float>(random() % 200) / 16; // ties
    }
    std::vector<TokenId> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    double total = 0;
    for (const float logit : logits) {
      total += std::exp(static_cast<double>(logit));
    }
    const GeneratedToken token = *with_logprobs(kKernels, logits, 0, 20);
    ASSERT_EQ(token.top.size(), std::min<size_t>(20, logits.size()));
    for (size_t k = 0; k < token.top.size(); ++k) {
      EXPECT_EQ(token.top[k].id, order[k]);
      const float logit = logits[static_cast<size_t>(order[k])];
      EXPECT_NEAR(token.top[k].logprob, logit - std::log(total), 1e-5);
      EXPECT_LE(token.top[k].logprob, 0);
    }
  }
}

TEST(Sampler, LogprobOfTheImpossibleIsANumber) {
  const std::vector<float> logits = {0, -kInfinity, 0};
  const GeneratedToken token = *with_logprobs(kKernels, logits, 1, 3);
  EXPECT_EQ(token.logprob, -9999);
  EXPECT_EQ(token.top[2].id, 1);
  EXPECT_EQ(token.top[2].logprob, -9999);
  EXPECT_NEAR(token.top[0].logprob, std::log(0.5), 1e-6);
}

} // namespace
} // namespace ingle
