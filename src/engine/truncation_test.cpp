#include "engine/truncation.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

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

std::vector<TokenId> kept(
    const std::vector<float>& logits,
    const SamplingParams& params,
    const std::vector<TokenId>& exempt = {}) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  const Survivors survivors = truncate(
      kKernels, logits, peak, params, params.xtc_probability > 0, exempt);
  std::vector<TokenId> ids;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (survivors.contains(logits[i], static_cast<TokenId>(i))) {
      ids.push_back(static_cast<TokenId>(i));
    }
  }
  return ids;
}

SamplingParams top_p(float p) {
  SamplingParams params;
  params.top_p = p;
  return params;
}

SamplingParams min_p(float p, int keep = 1) {
  SamplingParams params;
  params.min_p = p;
  params.min_tokens_to_keep = keep;
  return params;
}

SamplingParams xtc(float threshold) {
  SamplingParams params;
  params.xtc_probability = 1;
  params.xtc_threshold = threshold;
  return params;
}

SamplingParams top_k(int k) {
  SamplingParams params;
  params.top_k = k;
  return params;
}

using Ids = std::vector<TokenId>;
const Ids kAll = {0, 1, 2, 3};

// Acceptance 10. Ascending sums: 0.1, 0.3, 0.6, 1.
TEST(Acceptance, top_p_boundary) {
  EXPECT_EQ(kept(kLogits, top_p(0.01f)), (Ids{1}));
  EXPECT_EQ(kept(kLogits, top_p(0.39f)), (Ids{1}));
  EXPECT_EQ(kept(kLogits, top_p(0.41f)), (Ids{1, 3}));
  EXPECT_EQ(kept(kLogits, top_p(0.69f)), (Ids{1, 3}));
  EXPECT_EQ(kept(kLogits, top_p(0.71f)), (Ids{0, 1, 3}));
  EXPECT_EQ(kept(kLogits, top_p(0.91f)), kAll);
  EXPECT_EQ(kept(kLogits, top_p(0)), kAll);
  EXPECT_EQ(kept(kLogits, top_p(1)), kAll);
  // On the boundary itself, in numbers that are exact: 0.5 > 1 - 0.5 is false.
  const std::vector<float> halves = {0, 0};
  EXPECT_EQ(kept(halves, top_p(0.5f)), (Ids{0}));
  EXPECT_EQ(kept(halves, top_p(0.51f)), (Ids{0, 1}));
}

// f32 sums fall short of the mass where its parts are of very different sizes.
TEST(Truncation, TopPNextToOneKeepsSomethingOfAnyLogits) {
  for (const int size : {3000, 50'000}) {
    std::vector<float> logits(static_cast<size_t>(size), -15.0f);
    logits[3] = 0;
    for (const float p : {0.9999999f, std::nextafter(1.0f, 0.0f)}) {
      EXPECT_FALSE(kept(logits, top_p(p)).empty());
    }
  }
}

// Acceptance 11. What survives keeps its logit: a set of ids is all there is.
TEST(Acceptance, min_p_exact_set) {
  EXPECT_EQ(kept(kLogits, min_p(0)), kAll);
  EXPECT_EQ(kept(kLogits, min_p(0.24f)), kAll);
  EXPECT_EQ(kept(kLogits, min_p(0.26f)), (Ids{0, 1, 3}));
  EXPECT_EQ(kept(kLogits, min_p(0.51f)), (Ids{1, 3}));
  EXPECT_EQ(kept(kLogits, min_p(0.76f)), (Ids{1}));
  EXPECT_EQ(kept(kLogits, min_p(1)), (Ids{1}));
  EXPECT_EQ(kept(kLogits, min_p(1, 3)), (Ids{0, 1, 3}));
  EXPECT_EQ(kept(kLogits, min_p(1, 100)), kAll);
  EXPECT_EQ(kept(kLogits, min_p(0.51f, 1)), (Ids{1, 3}));
  // Rescued are only tokens that top_p has left.
  SamplingParams both = min_p(1, 3);
  both.top_p = 0.5f;
  EXPECT_EQ(kept(kLogits, both), (Ids{1, 3}));
}

// Acceptance 13.
TEST(Acceptance, xtc_prob1) {
  EXPECT_EQ(kept(kLogits, xtc(0.15f)), (Ids{0, 2}));
  EXPECT_EQ(kept(kLogits, xtc(0.25f)), (Ids{0, 2, 3}));
  // One candidate, or none: nothing to remove.
  EXPECT_EQ(kept(kLogits, xtc(0.35f)), kAll);
  EXPECT_EQ(kept(kLogits, xtc(0.45f)), kAll);
  EXPECT_EQ(kept(kLogits, xtc(0)), (Ids{2}));
  EXPECT_EQ(kept(kLogits, xtc(0.15f), {1}), (Ids{0, 1, 2}));
  EXPECT_EQ(kept(kLogits, xtc(0.15f), {0, 1, 3}), kAll);
  // Equals that are the least likely candidates all stay.
  EXPECT_EQ(kept({2, 1, 2, 1}, xtc(0.1f)), (Ids{1, 3}));
}

TEST(Truncation, XtcTakesTheProbabilitiesOfWhatIsLeft) {
  // 0.3 / 0.7 is above the threshold, 0.3 is not.
  SamplingParams params = xtc(0.4f);
  EXPECT_EQ(kept(kLogits, params), kAll);
  params.top_p = 0.5f;
  EXPECT_EQ(kept(kLogits, params), (Ids{3}));
}

TEST(Truncation, TopKCountsWhatXtcHasLeft) {
  SamplingParams params = xtc(0.25f);
  params.top_k = 2;
  EXPECT_EQ(kept(kLogits, params), (Ids{0, 3}));
  EXPECT_EQ(kept(kLogits, params, {1}), (Ids{1, 3}));
}

TEST(Truncation, TopKKeepsTheLikeliestAndTheLowerOfEquals) {
  EXPECT_EQ(kept(kLogits, top_k(0)), kAll);
  EXPECT_EQ(kept(kLogits, top_k(1)), (Ids{1}));
  EXPECT_EQ(kept(kLogits, top_k(2)), (Ids{1, 3}));
  EXPECT_EQ(kept(kLogits, top_k(100)), kAll);
  EXPECT_EQ(kept({1, 1, 1, 1}, top_k(3)), (Ids{0, 1, 2}));
  EXPECT_EQ(kept({0, 1, 1, 1}, top_p(0.5f)), (Ids{1, 2}));
}

TEST(Truncation, WhatCanNotComeIsNeverKept) {
  const std::vector<float> logits = {-kInfinity, 0, -kInfinity, -1};
  for (const SamplingParams& params :
       {SamplingParams(), top_p(0.999f), min_p(1, 4), xtc(0.5f), top_k(3)}) {
    EXPECT_EQ(kept(logits, params), (Ids{1, 3}));
  }
}

TEST(Truncation, NucleusOfManyEqualsIsCutByTheirIds) {
  const std::vector<float> flat(5000, 1.0f);
  const Ids ids = kept(flat, top_p(0.5f));
  ASSERT_EQ(ids.size(), 2500u);
  EXPECT_EQ(ids.back(), 2499);
}

TEST(Truncation, MostLikelyIsSortedAndCountsTheImpossible) {
  const std::vector<float> logits = {1, -kInfinity, 3, 1, 2};
  const auto ids_of = [&](size_t count) {
    Ids ids;
    for (const Candidate& candidate : most_likely(logits, count)) {
      ids.push_back(candidate.id);
    }
    return ids;
  };
  EXPECT_EQ(ids_of(0), Ids{});
  EXPECT_EQ(ids_of(3), (Ids{2, 4, 0}));
  EXPECT_EQ(ids_of(5), (Ids{2, 4, 0, 3, 1}));
  EXPECT_EQ(ids_of(100), (Ids{2, 4, 0, 3, 1}));
}

// The same by a full sort in f64.
struct Reference {
  std::vector<Candidate> order; // of likelihood; what is left
  double distance = 1; // of the nearest sum to a bound: rounding decides below

  explicit Reference(const std::vector<float>& logits) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (!std::isinf(logits[i])) {
        order.push_back({logits[i], static_cast<TokenId>(i)});
      }
    }
    std::sort(order.begin(), order.end(), precedes);
  }

  std::vector<double> probabilities() const {
    std::vector<double> p;
    double sum = 0;
    for (const Candidate& candidate : order) {
      p.push_back(std::exp(
          static_cast<double>(candidate.logit) -
          static_cast<double>(order[0].logit)));
      sum += p.back();
    }
    for (double& value : p) {
      value /= sum;
    }
    return p;
  }

  void apply_top_p(double bound) {
    if (bound <= 0 || bound >= 1) {
      return;
    }
    double before = 0;
    size_t count = 0;
    for (const double p : probabilities()) {
      distance = std::min(distance, std::abs(before - bound));
      if (before >= bound) {
        break;
      }
      before += p;
      ++count;
    }
    order.resize(count);
  }

  void apply_min_p(double bound, size_t keep) {
    if (bound <= 0) {
      return;
    }
    const auto p = probabilities();
    size_t count = 0;
    for (; count < p.size() && p[count] >= bound * p[0]; ++count) {
      distance = std::min(distance, std::abs(p[count] / p[0] - bound));
    }
    order.resize(std::min(order.size(), std::max(count, keep)));
  }

  void apply_xtc(double threshold, const Ids& exempt) {
    const auto p = probabilities();
    double least = 2;
    for (const double value : p) {
      distance = std::min(distance, std::abs(value - threshold));
      least = value > threshold ? std::min(least, value) : least;
    }
    std::vector<Candidate> left;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool is_exempt =
          std::find(exempt.begin(), exempt.end(), order[i].id) != exempt.end();
      if (p[i] <= least || is_exempt) {
        left.push_back(order[i]);
      }
    }
    order = std::move(left);
  }

  Ids ids() const {
    Ids sorted;
    for (const Candidate& candidate : order) {
      sorted.push_back(candidate.id);
    }
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
};

// Vocabularies of one token and more; logits with ties, with -inf, nearly flat
// and steep.
std::vector<float> random_logits(std::mt19937& random) {
  const size_t sizes[] = {1, 2, 3, 7, 40, 300, 2000};
  const float spreads[] = {0.01f, 1, 4, 30};
  std::vector<float> logits(sizes[random() % 7]);
  std::normal_distribution<float> normal(0, spreads[random() % 4]);
  const bool ties = random() % 2 == 0;
  for (float& logit : logits) {
    logit = ties ? std::round(normal(random)) : normal(random);
    logit = random() % 10 == 0 ? -kInfinity : logit;
  }
  logits[random() % logits.size()] = 0.5f; // one is finite
  return logits;
}

SamplingParams random_params(std::mt19937& random, size_t vocabulary) {
  const auto uniform = [&] {
    return std::uniform_real_distribution<float>(0, 1)(random);
  };
  SamplingParams params;
  if (random() % 2 == 0) {
    params.top_p = uniform();
  }
  if (random() % 2 == 0) {
    params.min_p = uniform();
    params.min_tokens_to_keep = static_cast<int>(1 + random() % 6);
  }
  if (random() % 2 == 0) {
    params.xtc_probability = 1;
    params.xtc_threshold = uniform() / 2;
  }
  if (random() % 2 == 0) {
    params.top_k = static_cast<int>(random() % (vocabulary + 2));
  }
  return params;
}

TEST(Truncation, KeepsWhatAFullSortKeeps) {
  std::mt19937 random(5);
  int compared = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<float> logits = random_logits(random);
    const SamplingParams params = random_params(random, logits.size());
    const Ids exempt = {0, static_cast<TokenId>(random() % logits.size())};
    Reference reference(logits);
    reference.apply_top_p(static_cast<double>(params.top_p));
    reference.apply_min_p(
        static_cast<double>(params.min_p),
        static_cast<size_t>(params.min_tokens_to_keep));
    if (params.xtc_probability > 0) {
      reference.apply_xtc(static_cast<double>(params.xtc_threshold), exempt);
    }
    if (params.top_k > 0 &&
        static_cast<size_t>(params.top_k) < reference.order.size()) {
      reference.order.resize(static_cast<size_t>(params.top_k));
    }
    if (reference.distance < 1e-6) {
      continue;
    }
    ++compared;
    ASSERT_EQ(kept(logits, params, exempt), reference.ids())
        << "case " << i << ", vocabulary " << logits.size() << ", top_p "
        << params.top_p << ", min_p " << params.min_p << ", xtc "
        << params.xtc_threshold << ", top_k " << params.top_k;
  }
  EXPECT_GT(compared, 3900);
}

} // namespace
} // namespace ingle
