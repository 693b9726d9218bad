// How far predictions are from those of another model or mode that reads the
// same text.
#pragma once

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "real_model.h"
#include "text/tokenizer.h"

namespace ingle {

// A sequence that a model reads, chunk by chunk. `model` may be null: then
// nothing may be read.
struct Reader {
  explicit Reader(std::unique_ptr<const Model> loaded)
      : model(std::move(loaded)),
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

inline std::vector<double> log_softmax(std::span<const float> logits) {
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

// Row `i` of logits [positions, vocabulary].
inline std::vector<double> log_softmax(const mx::array& logits, size_t i) {
  const auto vocabulary = static_cast<size_t>(logits.shape(1));
  return log_softmax(
      std::span(logits.data<float>() + i * vocabulary, vocabulary));
}

// KL(truth || other), and how often both find the same token likeliest.
class Divergence {
 public:
  void add(std::span<const double> truth, std::span<const double> other) {
    double kl = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      kl += std::exp(truth[i]) * (truth[i] - other[i]);
    }
    sum_ += kl;
    max_ = std::max(max_, kl);
    same_ += argmax(truth) == argmax(other) ? 1 : 0;
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
  static size_t argmax(std::span<const double> values) {
    const auto best = std::max_element(values.begin(), values.end());
    return static_cast<size_t>(best - values.begin());
  }

  double sum_ = 0;
  double max_ = 0;
  size_t same_ = 0;
  size_t positions_ = 0;
};

// Prose and code.
inline std::vector<TokenId> text_tokens(const RealModel& model) {
  const auto fs = make_posix_file_system();
  const auto text = fs->read(std::string(INGLE_TEST_DATA) + "/kl_text.txt");
  const auto tokenizer =
      Tokenizer::load(*fs, join_path(folder_of(model), "tokenizer.json"));
  return (*tokenizer)->encode(*text, true).value();
}

} // namespace ingle
