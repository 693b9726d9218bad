#include "cli/sampling_flags.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace ingle {
namespace {

SamplingFlags parse(std::vector<std::string> arguments) {
  CLI::App app;
  SamplingFlags flags;
  add_sampling_flags(app, flags);
  std::reverse(arguments.begin(), arguments.end()); // as CLI11 wants them
  app.parse(std::move(arguments));
  return flags;
}

TEST(SamplingFlagsTest, WhatIsNotGivenStays) {
  SamplingParams params;
  params.temperature = 0.6f;
  params.top_k = 40;
  params.seed = 7;
  parse({"--top-k", "0", "--temp", "1.5"}).apply_to(params);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_FLOAT_EQ(params.temperature, 1.5f);
  EXPECT_EQ(params.seed, 7u);
  EXPECT_FLOAT_EQ(params.top_p, 1);
}

TEST(SamplingFlagsTest, EachFlagSetsItsOwn) {
  SamplingParams params;
  parse({"--temperature",
         "0.1",
         "--top-p",
         "0.2",
         "--min-p",
         "0.3",
         "--xtc-probability",
         "0.4",
         "--xtc-threshold",
         "0.05",
         "--repetition-penalty",
         "1.6",
         "--presence-penalty",
         "-0.7",
         "--frequency-penalty",
         "0.8",
         "--seed",
         "9223372036854775807"})
      .apply_to(params);
  EXPECT_FLOAT_EQ(params.temperature, 0.1f);
  EXPECT_FLOAT_EQ(params.top_p, 0.2f);
  EXPECT_FLOAT_EQ(params.min_p, 0.3f);
  EXPECT_FLOAT_EQ(params.xtc_probability, 0.4f);
  EXPECT_FLOAT_EQ(params.xtc_threshold, 0.05f);
  EXPECT_FLOAT_EQ(params.repetition_penalty, 1.6f);
  EXPECT_FLOAT_EQ(params.presence_penalty, -0.7f);
  EXPECT_FLOAT_EQ(params.frequency_penalty, 0.8f);
  EXPECT_EQ(params.seed, 9223372036854775807u);
}

TEST(SamplingFlagsTest, SeedIsReadAsTheApiReadsIt) {
  EXPECT_EQ(parse({"--seed", "0"}).seed, 0u);
  EXPECT_EQ(parse({"--seed", "-2"}).seed, ~uint64_t{1});
  EXPECT_EQ(parse({"--seed=-9223372036854775808"}).seed, uint64_t{1} << 63);
  EXPECT_EQ(parse({"--seed", "-1"}).seed, std::nullopt);
  for (const char* const bad :
       {"9223372036854775808",
        "18446744073709551616",
        "99999999999999999999",
        "-9223372036854775809",
        "1.5",
        "1e3",
        "0x10",
        "7 ",
        "x",
        ""}) {
    EXPECT_THROW(parse({"--seed=" + std::string(bad)}), CLI::ParseError) << bad;
  }
}

TEST(SamplingFlagsTest, LogitBiasMayBeRepeated) {
  SamplingParams params;
  parse({"--logit-bias", "42=-5", "--logit-bias", "7=1.5"}).apply_to(params);
  const std::vector<std::pair<TokenId, float>> expected = {
      {42, -5.0f}, {7, 1.5f}};
  EXPECT_EQ(params.logit_bias, expected);
}

TEST(SamplingFlagsTest, ValueOutOfRangeIsRefused) {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"--temperature", "5.1"},
           {"--temperature", "-1"},
           {"--top-p", "1.1"},
           {"--top-k", "-1"},
           {"--min-p", "2"},
           {"--xtc-threshold", "0.6"},
           {"--repetition-penalty", "-1"},
           {"--presence-penalty", "3"},
           {"--logit-bias", "x"},
           {"--logit-bias", "1="},
           {"--logit-bias", "=1"},
           {"--logit-bias", "1=2x"},
           {"--logit-bias", "-1=2"},
           {"--logit-bias", "1=nan"}}) {
    EXPECT_THROW(parse({flag, value}), CLI::ParseError) << flag << value;
  }
}

TEST(SamplingFlagsTest, ServerDefaultsAreSetOneByOne) {
  CLI::App app;
  GenerationDefaults defaults;
  add_default_flags(app, defaults);
  app.parse("--temp 0.5 --max-tokens 9");
  EXPECT_FLOAT_EQ(*defaults.temperature, 0.5f);
  EXPECT_EQ(defaults.max_tokens, 9);
  EXPECT_FALSE(defaults.top_p || defaults.min_p || defaults.top_k);
}

TEST(SamplingFlagsTest, WhatTheEngineWouldRefuseIsRefusedAtOnce) {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"--temperature", "nan"},
           {"--temperature", "-1"},
           {"--top-p", "1.5"},
           {"--min-p", "inf"},
           {"--repetition-penalty", "0.001"},
           {"--repetition-penalty", "1000"},
           {"--logit-bias", "5=500"},
           {"--logit-bias", "5=nan"}}) {
    EXPECT_THROW(parse({flag, value}), CLI::ValidationError) << flag << value;
  }
  EXPECT_THROW(
      parse({"--logit-bias", "5=1", "--logit-bias", "5=2"}),
      CLI::ValidationError);
  SamplingParams params;
  parse({"--repetition-penalty", "0"}).apply_to(params);
  EXPECT_EQ(params.repetition_penalty, 0);
}

} // namespace
} // namespace ingle
