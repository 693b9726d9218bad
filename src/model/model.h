// A loaded model: const, shared by all sequences.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include <mlx/array.h>

#include "base/stopwatch.h"
#include "base/token.h"
#include "cache/kv_state.h"
#include "kernels/logits.h"
#include "model/adapter_layout.h"
#include "model/config.h"
#include "model/cpu_kernels.h"
#include "model/lora.h"

namespace ingle {

// After which tokens of a row the logits are wanted.
enum class Logits {
  kNone, // a piece of a prompt that is not the last
  kLast,
  kAll, // to score a prompt
};

// One sequence's part of a step: `tokens` follow what `kv` holds.
struct Row {
  std::span<const TokenId> tokens; // at least one, each below the vocab size
  KvState* kv = nullptr; // made by the same model; not owned
  Logits logits = Logits::kLast;
  const AdapterSet* adapters = nullptr; // null: the model alone; not owned
};

// How many positions of logits a step gives for the row.
size_t logits_count(const Row& row);

// Threads: the engine thread, which also loads it.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;

  // An empty state with a cache for each layer.
  virtual KvState make_kv() const = 0;

  // One step of any number of rows, each over its own caches: computed by the
  // kernels, or built of MLX's ops. Linear layers run on all rows' tokens at
  // once, attention row by row, the head on the positions whose logits are
  // wanted and on no other.
  //
  // Returns: logits [positions that are wanted, vocab_size] in f32, in the
  //          order of the rows and their tokens; nothing where none is.
  // Throws what MLX throws: call it, and evaluate, inside run_mlx(), then
  // commit or abandon every row's kv. run_step() does all of it.
  virtual std::optional<mx::array> forward(std::span<const Row> rows) const = 0;

  // What adapters are loaded for. May be kept longer than the model.
  virtual std::shared_ptr<const AdapterLayout> adapter_layout() const {
    return std::make_shared<const AdapterLayout>();
  }

  // Memory that the weights take.
  size_t weight_bytes() const;

  // What computes its steps; null: MLX's own ops.
  virtual CpuKernels* kernels() const {
    return nullptr;
  }
  // What looks at logits: those kernels and threads, or the quickest kernels
  // there are on the caller's thread. Not longer than the model.
  LogitPasses logit_passes() const;
};

// Computes and commits one step. `evaluation`, which may be null, gets
// the time that its evaluation takes.
// Errors: what run_mlx() gives, and kInternal (layers of unequal length);
//         every row's kv is then abandoned.
Result<std::optional<mx::array>> run_step(
    const Model& model,
    std::span<const Row> rows,
    Stopwatch* evaluation = nullptr);

} // namespace ingle
