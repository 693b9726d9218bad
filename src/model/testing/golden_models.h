// Tiny models of the goldens in tests/data, and how tests run them.
#pragma once

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

// The case's model, in the folder /tiny.
inline std::unique_ptr<FileSystem> write_golden_model(const Json& golden) {
  TinyModel tiny{
      golden["config"].dump(), {}, golden["config"].contains("quantization")};
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
  auto fs = make_memory_file_system();
  EXPECT_TRUE(write_tiny_model(*fs, "/tiny", tiny).is_ok());
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

// The logits after the last of the tokens.
inline std::vector<float>
step(const Model& model, KvState& kv, std::span<const TokenId> tokens) {
  const Row row{tokens, &kv, Logits::kLast};
  const auto logits = run_step(model, {&row, 1});
  EXPECT_TRUE(logits.is_ok()) << logits.status().message();
  const float* data = (*logits)->data<float>();
  return {data, data + model.config().vocab_size};
}

inline std::vector<TokenId> some_tokens(int n, int seed = 1) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < n; ++i) {
    tokens.push_back((i * 37 + seed * 101) % 256);
  }
  return tokens;
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
