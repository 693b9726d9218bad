// How far the CPU kernels' predictions are from the exact ones, over a text of
// prose and code that all three modes read side by side.
#include <algorithm>
#include <cmath>
#include <iostream>

#include <gtest/gtest.h>

#include "default_model.h"
#include "text/tokenizer.h"

namespace ingle {
namespace {

constexpr size_t kMinPositions = 2000;
constexpr size_t kChunk = 128; // tokens: 25 MB of logits in each mode

// A sequence that a model reads, chunk by chunk.
struct Reader {
  explicit Reader(RunOptions options)
      : model(load_default_model(options)),
        kv(model == nullptr ? KvState({}) : model->make_kv()) {}

  // Logits [chunk.size(), vocabulary].
  mx::array read(std::span<const TokenId> chunk) {
    const Row row{chunk, &kv, Logits::kAll};
    auto stepped = run_step(*model, {&row, 1});
    EXPECT_TRUE(stepped.is_ok()) << stepped.status().message();
    return std::move(stepped).value().value();
  }

  std::unique_ptr<const Model> model;
  KvState kv;
};

// Of logits [positions, vocabulary].
std::span<const float> row_of(const mx::array& logits, size_t i) {
  const auto vocabulary = static_cast<size_t>(logits.shape(1));
  return {logits.data<float>() + i * vocabulary, vocabulary};
}

std::vector<double> log_softmax(std::span<const float> logits) {
  std::vector<double> logs(logits.begin(), logits.end());
  const double peak = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double logit : logs) {
    sum += std::exp(logit - peak);
  }
  const double total = peak + std::log(sum);
  for (double& log : logs) {
    log -= total;
  }
  return logs;
}

size_t argmax(std::span<const double> values) {
  const auto best = std::max_element(values.begin(), values.end());
  return static_cast<size_t>(best - values.begin());
}

// KL(exact || other), and how often both find the same token likeliest.
class Divergence {
 public:
  void add(std::span<const double> exact, std::span<const double> other) {
    double kl = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      kl += std::exp(exact[i]) * (exact[i] - other[i]);
    }
    sum_ += kl;
    max_ = std::max(max_, kl);
    same_ += argmax(exact) == argmax(other) ? 1 : 0;
    ++positions_;
  }
  double mean() const {
    return sum_ / static_cast<double>(positions_);
  }
  double top1() const {
    return static_cast<double>(same_) / static_cast<double>(positions_);
  }
  void tell(const std::string& mode) const {
    std::cout << mode << ": mean KL " << mean() << ", most " << max_
              << ", the same top token " << top1() << ", over " << positions_
              << " positions\n";
    testing::Test::RecordProperty(mode + "_mean_kl", std::to_string(mean()));
    testing::Test::RecordProperty(mode + "_top1", std::to_string(top1()));
  }

 private:
  double sum_ = 0;
  double max_ = 0;
  size_t same_ = 0;
  size_t positions_ = 0;
};

std::vector<TokenId> text_tokens() {
  const auto fs = make_posix_file_system();
  const auto text = fs->read(std::string(INGLE_TEST_DATA) + "/kl_text.txt");
  const auto tokenizer =
      Tokenizer::load(*fs, join_path(default_model_folder(), "tokenizer.json"));
  return (*tokenizer)->encode(*text, true).value();
}

TEST(KernelsKlTest, NearAndFastPredictWhatExactDoes) {
  Reader exact({.numerics = Numerics::kExact});
  if (exact.model == nullptr) {
    GTEST_SKIP() << kNoDefaultModel;
  }
  Reader near({.numerics = Numerics::kNear});
  Reader fast({.numerics = Numerics::kFast});
  ASSERT_NE(near.model, nullptr);
  ASSERT_NE(fast.model, nullptr);
  const std::vector<TokenId> tokens = text_tokens();
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
      const auto logs = [&](const mx::array& logits) {
        return log_softmax(row_of(logits, i));
      };
      const std::vector<double> expected = logs(truth);
      near_divergence.add(expected, logs(near_logits));
      fast_divergence.add(expected, logs(fast_logits));
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
  if (load_default_model({}) == nullptr) {
    GTEST_SKIP() << kNoDefaultModel;
  }
  const std::vector<TokenId> tokens = text_tokens();
  for (const KvQuantization& kv :
       {KvQuantization{8, 64}, KvQuantization{8, 32}, KvQuantization{4, 32}}) {
    Reader full({.numerics = Numerics::kExact});
    const auto uniform = [&](Numerics numerics) {
      return RunOptions{
          .numerics = numerics, .kv_quant = KvQuant::kUniform, .kv = kv};
    };
    Reader exact(uniform(Numerics::kExact));
    Reader near(uniform(Numerics::kNear));
    Divergence exact_divergence;
    Divergence near_divergence;
    for (size_t begin = 0; begin < kTokens; begin += kChunk) {
      const auto chunk = std::span(tokens).subspan(begin, kChunk);
      const mx::array truth = full.read(chunk);
      const mx::array exact_logits = exact.read(chunk);
      const mx::array near_logits = near.read(chunk);
      for (size_t i = 0; i < kChunk; ++i) {
        const std::vector<double> expected = log_softmax(row_of(truth, i));
        exact_divergence.add(expected, log_softmax(row_of(exact_logits, i)));
        near_divergence.add(expected, log_softmax(row_of(near_logits, i)));
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
