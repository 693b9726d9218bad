// What a model folder holds, without loading it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_system.h"

namespace ingle {

struct ModelSummary {
  std::string family; // model_type, as its file has it; empty: not known
  std::string tier; // "targeted", "generic"; "none": it can't be loaded
  std::string quantization; // "4-bit", "4-bit and others", "dense"
  int context = 0; // tokens; 0: not known
  uint64_t bytes = 0; // of all files
  std::string problem; // what keeps it from being loaded; empty: nothing known
};

// Reads config.json and the heads of the weights. Never fails: what can't be
// read is the problem.
ModelSummary summarize_model(FileSystem& fs, const std::string& folder);

} // namespace ingle
