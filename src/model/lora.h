// Adapters (LoRA): a folder of them on its way into memory, and those that a
// sequence runs with, one or several.
//
// A folder holds adapters.safetensors, else adapter_model.safetensors, and
// optiq_lora_config.json, else adapter_config.json: as mlx-lm writes it
// (A [in, rank], B [rank, out], the scale in lora_parameters.scale) or PEFT
// (A [rank, in], B [out, rank], lora_alpha / r). Shapes decide which, and where
// they fit both, the names: lora_a is mlx-lm's, lora_A PEFT's. The same numbers
// in either form are the same adapter: they give the same bits.
//
// Sources: mlx-lm's tuner (LoRALinear), Hugging Face PEFT (LoraConfig,
// lora.Linear); ours read nothing else of them.
//
// Owns:    f32 in memory of its own; no arrays of MLX.
// Threads: any; const once made. Who runs a sequence holds its set, whatever is
//          mounted or unmounted meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/arena.h"
#include "kernels/low_rank.h"
#include "model/adapter_layout.h"

namespace ingle {

// What is told of an adapter.
struct AdapterInfo {
  int modules = 0; // of the model that it adds something to
  int skipped = 0; // modules that the model does not have
  int rank = 0; // the largest
  float scale = 0; // as its config has it, of a module without one of its own
  uint64_t bytes = 0; // of memory
};

class Adapter {
 public:
  // Checks everything before it gives anything: an adapter is there as a whole,
  // or not at all.
  //
  // Errors: kNotFound (no such folder, no weights, no config), kIo, kCorruption
  //         (what is not whole, or does not fit the model: also where no module
  //         of the model is in it), kUnsupported (modules that are there in the
  //         model, but can't be adapted; DoRA, whole weights, biases); one line
  //         that names the file and the tensor or the field.
  static Result<std::shared_ptr<const Adapter>>
  load(FileSystem& fs, const std::string& folder, const AdapterLayout& layout);

  const AdapterInfo& info() const {
    return info_;
  }
  // 16 bytes: XXH3-128 of names, shapes, values and effective scales.
  const std::string& hash() const {
    return hash_;
  }
  // Of the model; it may add to each.
  size_t linears() const {
    return parts_.size();
  }
  // Null: it adds nothing to this linear.
  const LowRank* find(size_t linear) const {
    return linear < parts_.size() && parts_[linear] ? &*parts_[linear]
                                                    : nullptr;
  }

 private:
  friend class AdapterLoad;
  Adapter() = default;

  AdapterInfo info_;
  std::string hash_;
  PageBuffer values_;
  std::vector<std::optional<LowRank>> parts_; // by linear
};

// Those of a sequence, in the order in which they are added.
class AdapterSet {
 public:
  // Null where nothing would be added: no adapter, or none with a scale.
  static std::shared_ptr<const AdapterSet> of(
      std::vector<std::shared_ptr<const Adapter>> adapters);

  // What is added to a linear; empty: nothing.
  std::span<const LowRank> of_linear(size_t linear) const {
    return linear < parts_.size() ? std::span(parts_[linear])
                                  : std::span<const LowRank>();
  }
  // Bytes that are equal iff weights and effective scales are, in order: what
  // keys and values depend on.
  const std::string& key() const {
    return key_;
  }

 private:
  AdapterSet() = default;

  std::vector<std::shared_ptr<const Adapter>> adapters_;
  std::vector<std::vector<LowRank>> parts_; // by linear
  std::string key_;
};

} // namespace ingle
