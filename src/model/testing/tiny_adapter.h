// Adapters for tiny models, made where a test needs them: every value follows
// from a tensor's name (tests/data/README.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "model/testing/tiny_model.h"

namespace ingle {

struct TinyAdapter {
  std::string config_json;
  std::vector<TinyTensor> tensors;
  std::string weights = "adapters.safetensors"; // the file's name
  std::string config = "adapter_config.json";
};

// A and B of a module.
void add_factors(
    const std::string& module,
    int64_t in,
    int64_t rank,
    int64_t out,
    TinyAdapter& adapter);

// As mlx-lm writes it.
std::string lora_config_json(int rank, float scale);

// Of every linear of the tiny llama. Another rank is another adapter.
TinyAdapter tiny_llama_adapter(int rank, float scale);

// Creates or replaces `folder`. Errors: kNoSpace, kIo.
Status write_tiny_adapter(
    FileSystem& fs,
    const std::string& folder,
    const TinyAdapter& adapter);

} // namespace ingle
