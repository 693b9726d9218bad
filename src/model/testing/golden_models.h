// Tiny models of the goldens in tests/data, and how tests run them.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/isa.h"
#include "model/load_model.h"
#include "model/testing/tiny_model.h"

namespace ingle {

using Json = nlohmann::json;

// Of a file in tests/data.
inline std::vector<Json> golden_cases(const std::string& file) {
  const auto text =
      make_posix_file_system()->read(std::string(INGLE_TEST_DATA) + "/" + file);
  const Json golden = Json::parse(*text);
  return {golden["cases"].begin(), golden["cases"].end()};
}

inline Json golden_case_in(const std::string& file, const std::string& name) {
  for (Json& each : golden_cases(file)) {
    if (each["name"] == name) {
      return each;
    }
  }
  ADD_FAILURE() << name;
  return {};
}

// The case's model, with another config, maybe.
inline TinyModel tiny_model_of(const Json& golden, const Json& config) {
  TinyModel tiny{config.dump(), {}, golden["config"].contains("quantization")};
  for (const Json& tensor : golden["tensors"]) {
    tiny.tensors.push_back({tensor[0], tensor[1]});
    TinyTensor& made = tiny.tensors.back();
    if (tensor[2].is_number()) {
      made.exponent = tensor[2].get<int>();
    } else if (tensor[2] != "norm") {
      made.form = tensor[2] == "words" ? TinyForm::kWords
          : tensor[2] == "bytes"       ? TinyForm::kBytes
                                       : TinyForm::kExponents;
    }
  }
  return tiny;
}

// In the folder /tiny.
inline std::unique_ptr<FileSystem> write_golden_model(const Json& golden) {
  auto fs = make_memory_file_system();
  EXPECT_TRUE(
      write_tiny_model(*fs, "/tiny", tiny_model_of(golden, golden["config"]))
          .is_ok());
  return fs;
}

inline Result<std::unique_ptr<const Model>> load_golden(
    const RunOptions& run,
    const Json& golden) {
  return load_model(*write_golden_model(golden), "/tiny", run);
}

// The kernels of each instruction set.
inline std::vector<RunOptions> near_runs() {
  std::vector<RunOptions> runs;
  for (const Isa isa : supported_isas()) {
    runs.push_back(
        {.numerics = Numerics::kNear,
         .threads = 2,
         .isa = std::string(to_string(isa))});
  }
  return runs;
}

// Those, and fast.
inline std::vector<RunOptions> kernel_runs() {
  std::vector<RunOptions> runs = near_runs();
  runs.push_back({.numerics = Numerics::kFast, .threads = 2});
  return runs;
}

// The logits after the last of the tokens.
inline std::vector<float>
step(const Model& model, KvState& kv, std::span<const TokenId> tokens) {
  const Row row{tokens, &kv, Logits::kLast};
  const auto logits = run_step(model, {&row, 1});
  EXPECT_TRUE(logits.is_ok()) << logits.status().message();
  const float* data = (*logits)->data<float>();
  return {data, data + model.config().vocab_size};
}

// Of logits: the largest difference.
inline float distance(
    const std::vector<float>& a,
    const std::vector<float>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

inline std::vector<TokenId> some_tokens(int n, int seed = 1) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < n; ++i) {
    tokens.push_back((i * 37 + seed * 101) % 256);
  }
  return tokens;
}

// What every model promises on the kernels.

// Of a prompt in pieces of each of these sizes.
inline void expect_any_cut_gives_the_same_bits(
    const Model& model,
    int length,
    const std::vector<size_t>& sizes) {
  const auto prompt = some_tokens(length);
  KvState at_once = model.make_kv();
  const auto expected = step(model, at_once, prompt);
  for (const size_t size : sizes) {
    KvState kv = model.make_kv();
    std::vector<float> logits;
    for (size_t begin = 0; begin < prompt.size(); begin += size) {
      const size_t count = std::min(size, prompt.size() - begin);
      logits = step(model, kv, std::span(prompt).subspan(begin, count));
    }
    EXPECT_EQ(logits, expected) << size;
  }
}

// Each goes on from `before` tokens of its own.
inline void expect_rows_equal_themselves_alone(
    const Model& model,
    const std::vector<std::vector<TokenId>>& prompts,
    int before = 0) {
  std::vector<std::vector<float>> alone;
  std::vector<KvState> together;
  for (const auto& prompt : prompts) {
    KvState kv = model.make_kv();
    if (before > 0) {
      step(model, kv, some_tokens(before, prompt[0]));
      together.push_back(kv.snapshot(before).restore());
    } else {
      together.push_back(model.make_kv());
    }
    alone.push_back(step(model, kv, prompt));
  }
  std::vector<Row> rows;
  for (size_t i = 0; i < prompts.size(); ++i) {
    rows.push_back({prompts[i], &together[i], Logits::kLast});
  }
  const auto logits = run_step(model, rows);
  ASSERT_TRUE(logits.is_ok()) << logits.status().message();
  const auto size = static_cast<size_t>(model.config().vocab_size);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const float* data = (*logits)->data<float>() + i * size;
    EXPECT_EQ(std::vector(data, data + size), alone[i]) << i;
  }
}

// Also twice: one that goes on does not change it.
inline void expect_restored_snapshot_continues(const Model& model) {
  const auto prompt = some_tokens(60);
  KvState kv = model.make_kv();
  step(model, kv, std::span(prompt).first(30));
  const KvSnapshot snapshot = kv.snapshot(30);
  const auto expected = step(model, kv, std::span(prompt).subspan(30));
  for (int i = 0; i < 2; ++i) {
    KvState restored = snapshot.restore();
    EXPECT_EQ(step(model, restored, std::span(prompt).subspan(30)), expected);
  }
}

// Fails in a step's evaluation, when all layers have been moved on.
class FailingModel final : public Model {
 public:
  explicit FailingModel(const Model& model) : model_(model) {}
  const ModelConfig& config() const override {
    return model_.config();
  }
  KvState make_kv() const override {
    return model_.make_kv();
  }
  std::optional<mx::array> forward(std::span<const Row> rows) const override {
    static_cast<void>(model_.forward(rows));
    throw std::runtime_error("no");
  }

 private:
  const Model& model_;
};

} // namespace ingle
