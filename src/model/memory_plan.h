// What it takes of memory to run a model, known before any of it is loaded.
//
// It counts what is allocated: weights as they are held, each layer's cache in
// its own kind and bits (a sliding window's stops growing), what a piece of a
// prompt is computed in, and the program with its tokenizer. docs/memory.md
// compares it with what is measured.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "cache/kv_state.h"
#include "model/config.h"
#include "model/run_options.h"

namespace ingle {

// Tokens of a sequence that is looked at where nobody says how long it is.
inline constexpr int kUsualContext = 8192;

// Bytes.
struct MemoryUse {
  uint64_t program = 0; // code, libraries, tokenizer
  uint64_t weights = 0;
  uint64_t kv = 0;
  uint64_t work = 0; // what a piece of a prompt is computed in

  uint64_t total() const {
    return program + weights + kv + work;
  }
};

// Threads: one.
class MemoryPlan {
 public:
  // Reads the config and the headers of the weights. `chunk`: tokens of a
  // prompt that are read at once.
  // Errors: as load_model().
  static Result<MemoryPlan> of(
      FileSystem& fs,
      const std::string& folder,
      const RunOptions& options,
      int chunk);

  const ModelConfig& config() const {
    return config_;
  }
  // With one sequence of so many positions. Does not fall with them.
  MemoryUse at(int64_t positions) const;

  // The longest sequence, of those that the model was made for, that fits
  // `usable` bytes. Work counts as for a full piece of a prompt. 0: none fits.
  int64_t max_context(uint64_t usable) const;

 private:
  MemoryPlan(ModelConfig config, KvState caches)
      : config_(std::move(config)), caches_(std::move(caches)) {}

  uint64_t work_bytes(int64_t positions) const;

  ModelConfig config_;
  KvState caches_; // empty
  Numerics numerics_ = Numerics::kExact;
  uint64_t program_bytes_ = 0;
  uint64_t weight_bytes_ = 0;
  int chunk_ = 0;
};

// What may be used of a machine's memory where no budget is given: three
// quarters.
uint64_t usable_memory(uint64_t machine_bytes);

} // namespace ingle
