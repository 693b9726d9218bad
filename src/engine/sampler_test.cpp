#include "engine/sampler.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace ingle {
namespace {

// log-probabilities 0.4, 0.3, 0.2, 0.1 in an order that is not sorted.
const std::vector<float> kLogits = {
    std::log(0.2f),
    std::log(0.4f),
    std::log(0.1f),
    std::log(0.3f)};

std::set<TokenId> drawn(const SamplingParams& params, int draws = 2000) {
  std::set<TokenId> ids;
  for (int i = 0; i < draws; ++i) {
    ids.insert(*sample(kLogits, params, 42, static_cast<uint64_t>(i)));
  }
  return ids;
}

TEST(Acceptance, greedy_ignores_truncation) {
  for (const SamplingParams& params :
       {SamplingParams{0, 0.1f, 3, {}}, SamplingParams{0, 1, 0, 7}}) {
    EXPECT_EQ(*sample(kLogits, params, 1, 1), 1);
  }
}

TEST(Acceptance, topk1_is_greedy) {
  for (const float temperature : {0.1f, 1.0f, 5.0f}) {
    EXPECT_EQ(drawn({temperature, 1, 1, {}}), std::set<TokenId>{1});
  }
}

TEST(Acceptance, top_p_boundary) {
  // Kept while what stands before sums to less than p.
  EXPECT_EQ(drawn({1, 0.39f, 0, {}}), (std::set<TokenId>{1}));
  EXPECT_EQ(drawn({1, 0.41f, 0, {}}), (std::set<TokenId>{1, 3}));
  EXPECT_EQ(drawn({1, 0.71f, 0, {}}), (std::set<TokenId>{0, 1, 3}));
  EXPECT_EQ(drawn({1, 0, 0, {}}), (std::set<TokenId>{0, 1, 2, 3}));
  EXPECT_EQ(drawn({1, 1, 0, {}}), (std::set<TokenId>{0, 1, 2, 3}));
}

TEST(Sampler, TopKKeepsTheLikeliest) {
  EXPECT_EQ(drawn({1, 1, 2, {}}), (std::set<TokenId>{1, 3}));
  EXPECT_EQ(drawn({1, 1, 100, {}}), (std::set<TokenId>{0, 1, 2, 3}));
  EXPECT_EQ(drawn({1, 0.95f, 2, {}}), (std::set<TokenId>{1, 3}));
}

TEST(Sampler, NucleusOfAFlatDistributionIsFoundBeyondTheFirstLook) {
  const std::vector<float> flat(500, 1.0f);
  std::set<TokenId> ids;
  for (uint64_t step = 0; step < 1000; ++step) {
    ids.insert(*sample(flat, {1, 0.5f, 0, {}}, 3, step));
  }
  EXPECT_LT(*ids.rbegin(), 251); // half of the equals, lower ids first
  EXPECT_GT(ids.size(), 200u);
}

TEST(Sampler, DrawsFollowTheDistribution) {
  std::map<TokenId, int> counts;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[*sample(kLogits, {1, 1, 0, {}}, 9, static_cast<uint64_t>(i))];
  }
  for (TokenId id = 0; id < 4; ++id) {
    const double expected =
        std::exp(static_cast<double>(kLogits[static_cast<size_t>(id)]));
    EXPECT_NEAR(counts[id] / static_cast<double>(kDraws), expected, 0.015);
  }
}

TEST(Acceptance, seed_reproducible) {
  const SamplingParams params{1, 1, 0, {}};
  std::vector<TokenId> first;
  std::vector<TokenId> again;
  std::vector<TokenId> other;
  for (uint64_t step = 0; step < 64; ++step) {
    first.push_back(*sample(kLogits, params, 5, step));
    again.push_back(*sample(kLogits, params, 5, step));
    other.push_back(*sample(kLogits, params, 6, step));
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(Sampler, LogitsThatAreNotNumbersAreAnError) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(sample(std::vector<float>{}, {}, 0, 0).is_ok());
  EXPECT_FALSE(sample(std::vector<float>{nan, nan}, {}, 0, 0).is_ok());
  EXPECT_FALSE(sample(std::vector<float>{-inf, -inf}, {}, 0, 0).is_ok());
  EXPECT_FALSE(sample(std::vector<float>{0, inf}, {}, 0, 0).is_ok());
  EXPECT_FALSE(
      sample(std::vector<float>{0, nan, 1}, {1, 1, 0, {}}, 0, 0).is_ok());
}

TEST(Sampler, LogprobsAreOfTheWholeVocabularyAndSorted) {
  const GeneratedToken token = with_logprobs(kLogits, 2, 3);
  EXPECT_EQ(token.id, 2);
  EXPECT_NEAR(token.logprob, std::log(0.1), 1e-5);
  ASSERT_EQ(token.top.size(), 3u);
  EXPECT_EQ(token.top[0].id, 1);
  EXPECT_EQ(token.top[1].id, 3);
  EXPECT_EQ(token.top[2].id, 0);
  EXPECT_NEAR(token.top[0].logprob, std::log(0.4), 1e-5);
  EXPECT_EQ(with_logprobs(kLogits, 2, 100).top.size(), 4u);
}

} // namespace
} // namespace ingle
