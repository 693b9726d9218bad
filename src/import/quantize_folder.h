// A model folder of plain weights -> one of quantised ones, as mlx-lm's convert
// makes it: every matrix whose rows are whole groups, the embedding, the head
// and experts too, to the bit. Experts that were published as two tensors
// without a suffix become the three that MLX has.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "import/import_model.h"
#include "import/quantize.h"

namespace ingle {

struct QuantizeOptions {
  AffineSpec spec{};
  // Modules whose names end so have 8 bits in groups of 64 whatever `spec`
  // says.
  std::vector<std::string> wide_modules{};
  // Tensors that the model does not use: the head, where it is the embedding;
  // parts that see.
  std::set<std::string> dropped{};
  // Where all experts' matrices of a kind are one tensor,
  // `path`.`this`.gate_proj of those in `path`.experts.gate_up_proj.
  std::string stacked_experts = "switch_mlp";
};

// The tensors of one type that were stored in one way.
struct QuantizeTotal {
  std::string type; // "BF16"
  std::string stored_as; // "4 bits, groups of 64, BF16 scales"
  uint64_t tensors = 0;
  uint64_t bytes = 0;
  uint64_t stored_bytes = 0;
};

struct QuantizeReport {
  std::string folder;
  std::vector<QuantizeTotal> totals; // in the order in which they first occur
};

// Reads `source` (config.json, the weights, the tokenizer) and writes `folder`:
// config.json with `quantization`, model.safetensors, and what the source has
// of the tokenizer's files, chat template, generation_config.json and
// kv_config.json, as they are. Weights but A_log are converted first to
// config.json's torch_dtype, or else to its text_config's dtype, if there is
// one. The caller knows that the config is one that ingle runs.
//
// Threads: calls `progress`, which may be empty, on the calling thread.
// Errors:  kInvalidRequest (`folder` exists and is not empty), kUnsupported
//          (a type of weights; they are quantised already), kCorruption (also:
//          a tokenizer that does not load, a weight that is not finite),
//          kNotFound, kNoSpace, kIo. Leaves nothing then.
// Crash:   as write_model_folder().
Result<QuantizeReport> quantize_folder(
    FileSystem& fs,
    const std::string& source,
    const std::string& folder,
    const QuantizeOptions& options,
    const ImportProgress& progress = {});

} // namespace ingle
