// GGUF file -> a model folder in the canonical form.
//
// docs/formats/gguf-import.md says what maps to what.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

struct ImportedTensor {
  std::string gguf_name;
  std::string name; // without ".weight"; empty where it is in config.json
  std::vector<int64_t> shape; // outermost first
  std::string gguf_type; // "Q4_1"
  std::string stored_as; // "4 bits, groups of 32, F16 scales"
  bool is_exact = true; // false: quantised again
  uint64_t gguf_bytes = 0;
  uint64_t stored_bytes = 0;
};

// What happened to all tensors of one type that were stored in one way.
struct ImportTotal {
  std::string gguf_type;
  std::string stored_as;
  bool is_exact = true;
  uint64_t tensors = 0;
  uint64_t gguf_bytes = 0;
  uint64_t stored_bytes = 0;
};

struct ImportReport {
  std::string architecture;
  std::string folder;
  std::vector<ImportedTensor> tensors;

  // By type and form, in the order in which they first occur.
  std::vector<ImportTotal> totals() const;
};

// Bytes of weights written so far, and in all.
using ImportProgress = std::function<void(uint64_t done, uint64_t total)>;

// Writes `folder` (config.json, model.safetensors, tokenizer.json,
// tokenizer_config.json, generation_config.json and, where the file has one,
// chat_template.jinja). Before anything is written, all metadata is checked and
// the tokenizer and the template are loaded as a server would; that the scales
// are finite is checked while they are converted. The files go to a temporary
// folder beside `folder`, which is renamed when it is whole and durable.
//
// Threads: calls `progress`, which may be empty, on the calling thread.
// Errors:  kInvalidRequest (`folder` exists and is not empty), kNotFound,
//          kUnsupported (architecture, tensor type, tokenizer, a model in
//          parts), kCorruption (a tokenizer or template that does not load,
//          too), kNoSpace, kIo. After an error neither `folder` nor the
//          temporary one is there.
// Crash:   `folder` is absent or whole. A temporary folder that was left is
//          removed by the next import to the same place; so two at once to one
//          place end with at least one failing.
Result<ImportReport> import_gguf(
    FileSystem& fs,
    const std::string& gguf_path,
    const std::string& folder,
    const ImportProgress& progress = {});

} // namespace ingle
