// Models of any family, small enough to be made where a test needs them: every
// byte of a tensor follows from its name (tests/data/README.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "weights/tensor.h"

namespace ingle {

// What a tensor holds.
enum class TinyForm {
  kFloats,
  kWords, // u32 of any bits
  kBytes, // u8 of any bits
  kExponents // u8: 122, 123 or 124
};

struct TinyTensor {
  std::string name;
  std::vector<int64_t> shape;
  // Uniform in +-2^exponent / 2; none: a norm, 1 +- 1/8.
  std::optional<int> exponent{};
  TinyForm form = TinyForm::kFloats;
};

struct TinyModel {
  std::string config_json;
  std::vector<TinyTensor> tensors;
  // Matrices have 4 bits, the embedding and routers of experts 8, in groups of
  // 32; else f32.
  bool quantised = false;
  // What is not quantised is rounded to: kF32, kF16 or kBF16.
  TensorType floats = TensorType::kF32;
};

// Creates `folder` with config.json and model.safetensors.
// Errors: kNoSpace, kIo.
Status write_tiny_model(
    FileSystem& fs,
    const std::string& folder,
    const TinyModel& model);

} // namespace ingle
