// All caches of one sequence, and the rule that they move together.
//
// A step appends to every layer, is evaluated, and then committed: after that
// all layers stand at the same offset. The request owns its state; a
// snapshot of it shares the rows.
//
// Threads: the engine thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/kv_cache.h"

namespace ingle {

class KvState;

// An immutable reference to the first length() positions of all layers.
struct KvSnapshot {
  std::vector<std::shared_ptr<const KvLayerSnapshot>> layers;

  int64_t length() const {
    return layers.empty() ? 0 : layers.front()->length();
  }
  // A state of its own that starts with these positions.
  KvState restore() const;
};

// What a state needs, beside its rows, to go on at an earlier position: of each
// layer that forgets a snapshot, of others null.
struct KvCheckpoint {
  int64_t position = 0;
  std::vector<std::shared_ptr<const KvLayerSnapshot>> layers;

  void add_buffers(KvBuffers& buffers) const;
};

class KvState {
 public:
  explicit KvState(std::vector<std::unique_ptr<KvCache>> layers)
      : layers_(std::move(layers)) {}

  // The cache of layer `i`.
  KvCache& layer(size_t i) {
    return *layers_[i];
  }

  // Committed positions, the same in all layers.
  int64_t offset() const {
    return layers_.empty() ? 0 : layers_.front()->offset();
  }
  // Allocated bytes of all layers.
  size_t bytes() const;
  // What an empty state comes to take: see KvCache.
  size_t bytes_for(int64_t positions, int step) const;

  // What a checkpoint of it comes to take, at most.
  size_t checkpoint_bytes_for(int64_t positions, int step) const;
  // Adds those that its caches refer to. Requires: nothing pending.
  void add_buffers(KvBuffers& buffers) const;
  // See KvCache.
  void release_unused();
  // Those of all layers, in their order.
  std::vector<std::string> schemes() const;

  // Room for `positions` in all, reserved once instead of grown into. Throws
  // what MLX throws.
  void reserve(int64_t positions);

  // What writes the pending rows of caches that have no arrays for them
  // (BlockKvCache) and are not evaluated yet, in all layers up to the last:
  // later layers' writers are made from earlier ones', and the last one set is
  // kept alone.
  void set_writer(const mx::array& writer) {
    writer_ = writer;
  }
  // What the caller evaluates together with the step's output.
  std::vector<mx::array> pending_arrays() const;
  // Takes over a step whose arrays have been evaluated. Errors: kInternal
  // (layers of different lengths: the step is abandoned).
  Status commit();
  // The step failed: the state goes back to what was committed before it where
  // the caches have that still (buffers of our own). Arrays of MLX's must not
  // be read again: with them goes this state, and nothing may be done with it
  // but is_intact() and destruction.
  void abandon();
  // False where an abandoned step took the state with it. A broken state is
  // never stored and never continued.
  bool is_intact() const {
    return intact_;
  }

  // True iff a layer forgets: it goes back further than its rows to
  // checkpoints alone.
  bool forgets() const;
  // It can go back to this position and to each up to offset().
  int64_t first_resume_point() const;

  // True iff all layers can forget what stands from `position` on.
  bool can_trim_to(int64_t position) const;
  // Errors: kUnsupported (a layer can't; nothing is changed).
  Status trim(int64_t position);

  // Requires: can_trim_to(length), is_intact().
  KvSnapshot snapshot(int64_t length) const;
  // Of offset(). Requires: nothing pending.
  KvCheckpoint checkpoint() const;
  // A state of its own that goes on at the checkpoint, which was this one's.
  KvState restore(const KvCheckpoint& checkpoint) const;

 private:
  std::vector<std::unique_ptr<KvCache>> layers_;
  std::optional<mx::array> writer_;
  bool intact_ = true;
};

} // namespace ingle
