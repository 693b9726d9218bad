#include "engine/check_request.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace ingle {
namespace {

ServedModel small_model() {
  ServedModel model;
  model.vocab_size = 100;
  model.context_length = 64;
  return model;
}

GenerationRequest good() {
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 10;
  return request;
}

struct Case {
  const char* where;
  std::function<void(GenerationRequest&)> spoil;
};

Case with(const char* where, float SamplingParams::* field, float value) {
  return {where, [=](GenerationRequest& r) { r.sampling.*field = value; }};
}

Case with(const char* where, int SamplingParams::* field, int value) {
  return {where, [=](GenerationRequest& r) { r.sampling.*field = value; }};
}

void expect_refused(const Case& bad) {
  GenerationRequest request = good();
  bad.spoil(request);
  const Status status = check_request(request, small_model());
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest) << bad.where;
  EXPECT_EQ(status.where(), bad.where) << status.message();
  EXPECT_TRUE(check_request(good(), small_model()).is_ok());
}

// Acceptance 12.
TEST(Acceptance, min_p_validation) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {-0.1f, 1.1f, nan}) {
    expect_refused(with("min_p", &SamplingParams::min_p, value));
  }
  for (const int value : {0, -1}) {
    expect_refused(
        with("min_tokens_to_keep", &SamplingParams::min_tokens_to_keep, value));
  }
  GenerationRequest request = good();
  for (const float value : {0.0f, 0.5f, 1.0f}) {
    request.sampling.min_p = value;
    EXPECT_TRUE(check_request(request, small_model()).is_ok());
  }
}

TEST(CheckRequest, FieldOutOfRangeIsNamed) {
  using P = SamplingParams;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const float value : {nan, inf, -inf, -1.0f}) {
    expect_refused(with("temperature", &P::temperature, value));
    expect_refused(with("top_p", &P::top_p, value));
    expect_refused(with("xtc_probability", &P::xtc_probability, value));
    expect_refused(with("xtc_threshold", &P::xtc_threshold, value));
    expect_refused(with("repetition_penalty", &P::repetition_penalty, value));
  }
  for (const float value : {nan, inf, -inf, 101.0f, -101.0f}) {
    expect_refused(with("presence_penalty", &P::presence_penalty, value));
    expect_refused(with("frequency_penalty", &P::frequency_penalty, value));
    expect_refused({"logit_bias", [=](GenerationRequest& request) {
                      request.sampling.logit_bias = {{1, 1.0f}, {2, value}};
                    }});
  }
  expect_refused(with("top_p", &P::top_p, 1.5f));
  expect_refused(with("xtc_probability", &P::xtc_probability, 1.5f));
  expect_refused(with("xtc_threshold", &P::xtc_threshold, 0.51f));
  expect_refused(with("repetition_penalty", &P::repetition_penalty, 1e-30f));
  expect_refused(with("top_k", &P::top_k, -1));
  expect_refused(with("repetition_context", &P::repetition_context, -1));
  expect_refused(with("presence_context", &P::presence_context, -1));
  expect_refused(with("frequency_context", &P::frequency_context, -1));
}

TEST(CheckRequest, TokensOutsideTheVocabularyAreRefused) {
  for (const TokenId id : {-1, 100}) {
    expect_refused({"prompt", [=](GenerationRequest& request) {
                      request.prompt.push_back(id);
                    }});
    expect_refused({"logit_bias", [=](GenerationRequest& request) {
                      request.sampling.logit_bias = {{id, 1.0f}};
                    }});
  }
  expect_refused(
      {"prompt", [](GenerationRequest& request) { request.prompt.clear(); }});
}

TEST(CheckRequest, LengthsAreHeldAgainstEachOtherAndTheContext) {
  using R = GenerationRequest;
  expect_refused({"max_tokens", [](R& r) { r.max_tokens = -1; }});
  expect_refused({"min_tokens", [](R& r) { r.min_tokens = -1; }});
  expect_refused({"min_tokens", [](R& r) { r.min_tokens = 11; }});
  expect_refused({"top_logprobs", [](R& r) { r.top_logprobs = -1; }});
  expect_refused({"max_tokens", [](R& r) { r.max_tokens = 62; }});
  expect_refused({"prompt", [](R& r) { r.prompt.assign(65, 1); }});

  R request = good();
  request.max_tokens = std::numeric_limits<int>::max();
  const Status status = check_request(request, small_model());
  EXPECT_EQ(status.reason(), "context_length_exceeded");
  EXPECT_EQ(
      status.message(),
      "the prompt has 3 tokens and the answer may have 2147483647, but the "
      "model's context holds 64: shorten the prompt or ask for at most 61");
  request.max_tokens = 61;
  request.min_tokens = 61;
  EXPECT_TRUE(check_request(request, small_model()).is_ok());
  request.min_tokens = 0;
  request.max_tokens = 0;
  EXPECT_TRUE(check_request(request, small_model()).is_ok());
}

// Acceptance 101.
TEST(CheckRequest, admission_over_budget_400) {
  ServedModel model = small_model();
  model.memory_context = 20;
  GenerationRequest request = good(); // a prompt of 3
  request.max_tokens = 17;
  EXPECT_TRUE(check_request(request, model).is_ok());
  request.max_tokens = 18;
  const Status status = check_request(request, model);
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(status.reason(), "context_over_budget");
  EXPECT_EQ(status.where(), "max_tokens");
  EXPECT_EQ(
      status.message(),
      "the prompt has 3 tokens and the answer may have 18, together 21, but 20 "
      "fit in the memory that may be used: ask for less, or allow more with "
      "--memory-budget");
}

} // namespace
} // namespace ingle
