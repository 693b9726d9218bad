// What a GGUF file's model becomes: its config.json and its tensors by their
// Hugging Face names.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "import/gguf_reader.h"

namespace ingle {

struct TensorPlan {
  const GgufTensor* source = nullptr; // lives as long as the GgufFile
  std::string module; // its tensor is <module>.weight
  // A matrix that loaders accept quantised. Others are stored plain.
  bool is_matrix = false;
  // GGUF keeps the rows of q and k of the llama family interleaved for its
  // rotary embedding: row 2j + p of a head is row p * (rows / 2) + j in the
  // Hugging Face form. The number of heads; 0 where rows stay in place.
  int64_t interleaved_heads = 0;
  // GGUF holds 1 + the weight of such a norm: it is stored in f32, less 1.
  bool is_one_plus = false;
};

// A tensor that config.json says in other words.
struct ReplacedTensor {
  const GgufTensor* source = nullptr;
  std::string replaced_by;
};

struct ModelPlan {
  nlohmann::ordered_json config; // without token ids and quantization
  std::vector<TensorPlan> tensors;
  std::vector<ReplacedTensor> replaced;
};

// Checks that every key and tensor the family needs is there, with the shape
// that the keys imply, and that no tensor is left over.
// Errors: kUnsupported (an architecture or a feature that ingle lacks, by
// name), kCorruption.
Result<ModelPlan> plan_model(const GgufFile& file);

// One family each; plan_model() has the table.
Result<ModelPlan> plan_gemma3(const GgufFile& file);
Result<ModelPlan> plan_llama(const GgufFile& file);

// The row of the GGUF tensor that becomes row `row`.
int64_t source_row(const TensorPlan& plan, int64_t row);

// The double that prints as the shortest decimal of `value`: 1e-05, not
// 9.999999747378752e-06.
double shortest_decimal(float value);

} // namespace ingle
