// A llama small enough to be made where a test needs it.
//
// tests/data/README.md specifies every byte of the tensors;
// tools/oracle/tiny_llama.py makes the same ones, and tests/data/
// tiny_llama.json says what mlx-lm answers with them.
#pragma once

#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

struct TinyLlamaOptions {
  bool tied = true; // the head is the embedding
  bool quantised = false; // 4 bits, the embedding 8; else f32
  // Also tokenizer.json with a piece for every id, and tokenizer_config.json
  // with a chat template.
  bool tokenizer = false;
};

// Creates `folder` with config.json and model.safetensors, at most 0.6 MB.
// Errors: kNoSpace, kIo.
Status write_tiny_llama(
    FileSystem& fs,
    const std::string& folder,
    const TinyLlamaOptions& options = {});

} // namespace ingle
