#include "cli/bench_plan.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

std::vector<std::string> names(const BenchSizes& sizes) {
  std::vector<std::string> names;
  for (const auto& test : plan_tests(sizes)) {
    names.push_back(test_name(test));
  }
  return names;
}

TEST(BenchPlanTest, NamesAreThoseOfLlamaBench) {
  EXPECT_EQ(test_name({.prompt = 512}), "pp512");
  EXPECT_EQ(test_name({.gen = 128}), "tg128");
  EXPECT_EQ(test_name({.gen = 64, .depth = 2048}), "tg64@d2048");
  EXPECT_EQ(test_name({.gen = 64, .batch = 8}), "tg64 b8");
  EXPECT_EQ(
      test_name({.gen = 64, .depth = 512, .batch = 2, .sampled = true}),
      "tg64@d512 b2+sample");
}

TEST(BenchPlanTest, WithoutSizesEveryKindIsMeasuredOnce) {
  const auto all = names({});
  EXPECT_THAT(
      all,
      IsSupersetOf(
          {"pp128",
           "pp512",
           "pp2048",
           "pp7800",
           "tg64",
           "tg64@d2048",
           "tg64@d8192",
           "tg64+sample",
           "tg64 b2",
           "tg64 b4",
           "tg64 b8",
           "tg64 b16"}));
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
}

TEST(BenchPlanTest, WhatIsGivenIsMeasuredAndNoMore) {
  EXPECT_THAT(names({.prompt = {16, 8}}), ElementsAre("pp16", "pp8"));
  EXPECT_THAT(names({.gen = {4}}), ElementsAre("tg4", "tg4+sample"));
  EXPECT_THAT(
      names({.depth = {32}}), ElementsAre("tg64@d32", "tg64@d32+sample"));
  EXPECT_THAT(
      names({.prompt = {8}, .gen = {4}, .depth = {0, 32}, .batch = {1, 2}}),
      ElementsAre(
          "pp8", "tg4", "tg4 b2", "tg4@d32", "tg4@d32 b2", "tg4+sample"));
}

TEST(BenchPlanTest, LengthOfZeroIsNone) {
  EXPECT_THAT(names({.prompt = {0}}), IsEmpty());
  EXPECT_THAT(names({.prompt = {8}, .gen = {0}}), ElementsAre("pp8"));
}

} // namespace
} // namespace ingle
