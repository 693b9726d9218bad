#include "engine/logits_processors.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace ingle {
namespace {

using Logits = std::vector<float>;

GenerationRequest after(std::vector<TokenId> prompt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = 10;
  return request;
}

Logits applied(
    const GenerationRequest& request,
    Logits logits,
    const std::vector<TokenId>& generated = {}) {
  LogitsProcessors processors(request, {});
  for (const TokenId token : generated) {
    processors.push(token);
  }
  processors.apply(logits);
  return logits;
}

// Acceptance 15.
TEST(Acceptance, repetition_sign_rule) {
  GenerationRequest request = after({0, 1, 2, 2});
  request.sampling.repetition_penalty = 2;
  EXPECT_EQ(applied(request, {3, -3, 0, 3}), (Logits{1.5f, -6, 0, 3}));
  // Once however often, and only within the window.
  request.sampling.repetition_context = 2;
  EXPECT_EQ(applied(request, {4, 4, 4, 4}), (Logits{4, 4, 2, 4}));
  EXPECT_EQ(applied(request, {4, 4, 4, 4}, {3}), (Logits{4, 4, 2, 2}));
  EXPECT_EQ(applied(request, {4, 4, 4, 4}, {3, 3}), (Logits{4, 4, 4, 2}));
  // 0: the whole history.
  request.sampling.repetition_context = 0;
  EXPECT_EQ(applied(request, {4, 4, 4, 4}), (Logits{2, 2, 2, 4}));
  // 1 and 0 are off, below 1 favours.
  for (const float off : {1.0f, 0.0f}) {
    request.sampling.repetition_penalty = off;
    EXPECT_FALSE(LogitsProcessors(request, {}).is_active());
  }
  request.sampling.repetition_penalty = 0.5f;
  EXPECT_EQ(applied(request, {4, -4, 4, 4}), (Logits{8, -2, 8, 4}));
}

TEST(LogitsProcessors, DefaultWindowIsTwentyTokens) {
  std::vector<TokenId> prompt(21, 1);
  prompt.front() = 0;
  GenerationRequest request = after(prompt);
  request.sampling.repetition_penalty = 2;
  EXPECT_EQ(applied(request, {4, 4}), (Logits{4, 2}));
}

// Acceptance 16.
TEST(Acceptance, presence_once_frequency_count) {
  GenerationRequest request = after({1, 2, 2, 2});
  request.sampling.presence_penalty = 0.5f;
  EXPECT_EQ(applied(request, {0, 0, 0}), (Logits{0, -0.5f, -0.5f}));
  request.sampling.presence_penalty = 0;
  request.sampling.frequency_penalty = 0.5f;
  EXPECT_EQ(applied(request, {0, 0, 0}), (Logits{0, -0.5f, -1.5f}));
  request.sampling.frequency_penalty = -0.5f;
  EXPECT_EQ(applied(request, {0, 0, 0}), (Logits{0, 0.5f, 1.5f}));
  request.sampling.frequency_penalty = 0;
  request.sampling.presence_penalty = -2;
  EXPECT_EQ(applied(request, {0, 0, 0}, {0}), (Logits{2, 2, 2}));
}

// Acceptance 18.
TEST(Acceptance, logit_bias_argmax) {
  GenerationRequest request = after({0});
  EXPECT_FALSE(LogitsProcessors(request, {}).is_active());
  request.sampling.logit_bias = {{2, 5.0f}, {0, -100.0f}};
  EXPECT_EQ(applied(request, {3, 2, 1}), (Logits{-97, 2, 6}));
}

// Acceptance 19. Any other order gives another number.
TEST(Acceptance, processors_order) {
  GenerationRequest request = after({0, 0});
  request.sampling.logit_bias = {{0, 3.0f}};
  request.sampling.repetition_penalty = 2;
  request.sampling.presence_penalty = 1;
  request.sampling.frequency_penalty = 0.25f;
  // (1 + 3) / 2 - 1 - 2 * 0.25
  EXPECT_EQ(applied(request, {1}), (Logits{0.5f}));
  // The sign that counts is that after the bias.
  EXPECT_EQ(applied(request, {-5}), (Logits{-5.5f}));
}

// Repetition, presence and frequency with windows of their own, by the rules
// as they are written: the last tokens are looked through at every step.
TEST(LogitsProcessors, WindowsEqualASearchThroughTheHistory) {
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    std::vector<TokenId> history;
    for (size_t n = 1 + random() % 30; history.size() < n;) {
      history.push_back(static_cast<TokenId>(random() % 8));
    }
    GenerationRequest request = after(history);
    request.sampling.frequency_penalty = 0.5f;
    const int windows[] = {0, 1, 3, 20, 1000};
    request.sampling.frequency_context = windows[random() % 5];
    LogitsProcessors processors(request, {});
    for (int step = 0; step < 40; ++step) {
      Logits expected(8, 0.0f);
      const auto window =
          static_cast<size_t>(request.sampling.frequency_context);
      const size_t seen =
          window == 0 ? history.size() : std::min(window, history.size());
      for (const TokenId token : std::span(history).last(seen)) {
        expected[static_cast<size_t>(token)] -= 0.5f;
      }
      Logits logits(8, 0.0f);
      processors.apply(logits);
      ASSERT_EQ(logits, expected) << "step " << step;
      history.push_back(static_cast<TokenId>(random() % 8));
      processors.push(history.back());
    }
  }
}

TEST(LogitsProcessors, EndIsForbiddenUntilThereAreMinTokens) {
  const TokenId eos[] = {0, 2};
  GenerationRequest request = after({1});
  request.min_tokens = 2;
  request.sampling.logit_bias = {{0, 100.0f}};
  LogitsProcessors processors(request, eos);
  const float impossible = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < 2; ++i) {
    Logits logits = {5, 5, 5};
    processors.apply(logits);
    EXPECT_EQ(logits, (Logits{impossible, 5, impossible}));
    processors.push(1);
  }
  Logits logits = {5, 5, 5};
  processors.apply(logits);
  EXPECT_EQ(logits, (Logits{105, 5, 5}));

  request.sampling.logit_bias.clear();
  EXPECT_TRUE(LogitsProcessors(request, eos).is_active());
  EXPECT_FALSE(LogitsProcessors(request, {}).is_active());
  request.ignore_eos = true;
  EXPECT_FALSE(LogitsProcessors(request, eos).is_active());
}

} // namespace
} // namespace ingle
