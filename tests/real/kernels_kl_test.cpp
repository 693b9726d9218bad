// How far the CPU kernels' predictions are from the exact ones, over a text of
// prose and code that all three modes read side by side.
#include "divergence.h"

namespace ingle {
namespace {

constexpr size_t kMinPositions = 2000;
constexpr size_t kChunk = 128; // tokens: 25 MB of logits in each mode

Reader reader(const RunOptions& options) {
  return Reader(load(kSmollm2, options));
}

TEST(KernelsKlTest, NearAndFastPredictWhatExactDoes) {
  Reader exact = reader({.numerics = Numerics::kExact});
  if (exact.model == nullptr) {
    GTEST_SKIP() << kSmollm2.absent;
  }
  Reader near = reader({.numerics = Numerics::kNear});
  Reader fast = reader({.numerics = Numerics::kFast});
  ASSERT_NE(near.model, nullptr);
  ASSERT_NE(fast.model, nullptr);
  const std::vector<TokenId> tokens = text_tokens(kSmollm2);
  ASSERT_GE(tokens.size(), kMinPositions);

  Divergence near_divergence;
  Divergence fast_divergence;
  std::span<const TokenId> left = tokens;
  while (!left.empty()) {
    const auto chunk = left.first(std::min(kChunk, left.size()));
    left = left.subspan(chunk.size());
    const mx::array truth = exact.read(chunk);
    const mx::array near_logits = near.read(chunk);
    const mx::array fast_logits = fast.read(chunk);
    for (size_t i = 0; i < chunk.size(); ++i) {
      const std::vector<double> expected = log_softmax(truth, i);
      near_divergence.add(expected, log_softmax(near_logits, i));
      fast_divergence.add(expected, log_softmax(fast_logits, i));
    }
  }
  near_divergence.tell("near");
  fast_divergence.tell("fast");
  EXPECT_LE(near_divergence.mean(), 1e-4);
  EXPECT_GE(near_divergence.top1(), 0.999);
  EXPECT_LE(fast_divergence.mean(), 5e-3);
  EXPECT_GE(fast_divergence.top1(), 0.97);
}

// What a state of 8 or 4 bits costs: with the kernels about as much as with
// MLX's quantisation, over a shorter text.
TEST(KernelsKlTest, QuantizedStatesCostWhatTheyCostExact) {
  constexpr size_t kTokens = 512;
  if (load(kSmollm2, {}) == nullptr) {
    GTEST_SKIP() << kSmollm2.absent;
  }
  const std::vector<TokenId> tokens = text_tokens(kSmollm2);
  for (const KvQuantization& kv :
       {KvQuantization{8, 64}, KvQuantization{8, 32}, KvQuantization{4, 32}}) {
    Reader full = reader({.numerics = Numerics::kExact});
    const auto uniform = [&](Numerics numerics) {
      return RunOptions{
          .numerics = numerics, .kv_quant = KvQuant::kUniform, .kv = kv};
    };
    Reader exact = reader(uniform(Numerics::kExact));
    Reader near = reader(uniform(Numerics::kNear));
    Divergence exact_divergence;
    Divergence near_divergence;
    for (size_t begin = 0; begin < kTokens; begin += kChunk) {
      const auto chunk = std::span(tokens).subspan(begin, kChunk);
      const mx::array truth = full.read(chunk);
      const mx::array exact_logits = exact.read(chunk);
      const mx::array near_logits = near.read(chunk);
      for (size_t i = 0; i < kChunk; ++i) {
        const std::vector<double> expected = log_softmax(truth, i);
        exact_divergence.add(expected, log_softmax(exact_logits, i));
        near_divergence.add(expected, log_softmax(near_logits, i));
      }
    }
    const std::string name =
        std::to_string(kv.bits) + "_bits_" + std::to_string(kv.group_size);
    exact_divergence.tell("exact_" + name);
    near_divergence.tell("near_" + name);
    EXPECT_LE(near_divergence.mean(), 1.5 * exact_divergence.mean());
  }
}

} // namespace
} // namespace ingle
