// Processors and truncations against mlx-lm's (tests/data/sampling.json).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file_system.h"
#include "engine/logits_processors.h"
#include "engine/truncation.h"

namespace ingle {
namespace {

const KernelSet& kKernels = kernel_set(supported_isas().back());

using Json = nlohmann::json;

Json golden_cases(const char* section) {
  const auto text = make_posix_file_system()->read(
      std::string(INGLE_TEST_DATA) + "/sampling.json");
  return Json::parse(*text)[section];
}

TEST(SamplingGolden, ProcessedLogitsEqualTheOracle) {
  const Json cases = golden_cases("processors");
  ASSERT_FALSE(cases.empty());
  for (size_t n = 0; n < cases.size(); ++n) {
    const Json& params = cases[n]["params"];
    GenerationRequest request;
    request.prompt = cases[n]["tokens"].get<std::vector<TokenId>>();
    SamplingParams& sampling = request.sampling;
    if (params.contains("logit_bias")) {
      sampling.logit_bias = params["logit_bias"];
    }
    sampling.repetition_penalty = params.value("repetition_penalty", 1.0f);
    sampling.repetition_context = params.value("repetition_context", 20);
    sampling.presence_penalty = params.value("presence_penalty", 0.0f);
    sampling.presence_context = params.value("presence_context", 20);
    sampling.frequency_penalty = params.value("frequency_penalty", 0.0f);
    sampling.frequency_context = params.value("frequency_context", 20);

    std::vector<float> logits = cases[n]["logits"];
    LogitsProcessors(request, {}).apply(logits);
    const std::vector<float> expected = cases[n]["processed"];
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(logits[i], expected[i], 1e-4f) << "case " << n << ", " << i;
    }
  }
}

std::vector<TokenId> kept(
    const std::vector<float>& logits,
    const SamplingParams& params,
    const std::vector<TokenId>& exempt) {
  const Survivors survivors = truncate(
      kKernels,
      logits,
      *std::max_element(logits.begin(), logits.end()),
      params,
      params.xtc_probability > 0,
      exempt);
  std::vector<TokenId> ids;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (survivors.contains(logits[i], static_cast<TokenId>(i))) {
      ids.push_back(static_cast<TokenId>(i));
    }
  }
  return ids;
}

void add_step(
    SamplingParams& sampling,
    const std::string& step,
    const Json& params) {
  if (step == "top_p") {
    sampling.top_p = params["top_p"];
  } else if (step == "min_p") {
    sampling.min_p = params["min_p"];
    sampling.min_tokens_to_keep = params["min_tokens_to_keep"];
  } else if (step == "xtc") {
    sampling.xtc_probability = 1;
    sampling.xtc_threshold = params["xtc_threshold"];
  } else {
    sampling.top_k = params["top_k"];
  }
}

TEST(SamplingGolden, TruncationsKeepWhatTheOracleKeeps) {
  const Json cases = golden_cases("truncations");
  ASSERT_FALSE(cases.empty());
  for (size_t n = 0; n < cases.size(); ++n) {
    const std::vector<float> logits = cases[n]["logits"];
    const Json& params = cases[n]["params"];
    const std::vector<TokenId> exempt = params["xtc_exempt"];
    SamplingParams chain;
    for (const std::string step : {"top_p", "min_p", "xtc", "top_k"}) {
      SCOPED_TRACE("case " + std::to_string(n) + ", " + step);
      SamplingParams alone;
      add_step(alone, step, params);
      add_step(chain, step, params);
      EXPECT_EQ(
          kept(logits, alone, exempt),
          cases[n]["alone"][step].get<std::vector<TokenId>>());
      EXPECT_EQ(
          kept(logits, chain, exempt),
          cases[n]["chain"][step].get<std::vector<TokenId>>());
    }
  }
}

} // namespace
} // namespace ingle
