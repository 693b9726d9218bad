// The cache of one layer of one sequence: the keys and values of the positions
// that the model has read.
//
// Two lengths count positions. offset() is what is committed. Between append()
// and commit() a step is pending: its rows are part of what is computed
// but not of offset(). A step that fails is abandoned.
//
// Rows below offset() never change, so a snapshot is a reference and a range.
// A buffer has one writer: a cache appends in place only where no snapshot
// can see the rows it writes; else it copies first.
//
// A sliding-window layer's cache forgets what no later position sees; it keeps
// the rows [begin(), offset()).
//
// ArrayKvCache (array_kv_cache.h) is what MLX's own ops append to, BlockKvCache
// (block_kv_cache.h) what the CPU kernels do; each in full or quantised.
//
// A recurrent layer has no rows but a state that each position changes
// (array_recurrent_cache.h, recurrent_cache.h): it can't go back, and a
// snapshot of it is possible only where it stands.
//
// Threads: the engine thread alone; these may hold mx::arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mlx/array.h>

namespace ingle {

namespace mx = mlx::core;

class KvCache;

// Memory that caches refer to: several may share one. `bytes` is what of it
// holds rows.
struct KvBuffer {
  const void* id = nullptr;
  size_t bytes = 0;
};
using KvBuffers = std::vector<KvBuffer>;

// How keys and values are held in fewer bits: each group of `group_size`
// elements of a head is affine in integers of `bits`. It is done when a row is
// written, and the row is attended to as it is held, by the tokens of its own
// step too: no result depends on how a prompt was cut into steps.
struct KvQuantization {
  int bits = 8; // 8 or 4
  int group_size = 64; // 32, 64 or 128

  bool operator==(const KvQuantization&) const = default;
};

// An immutable reference to what one layer has of its first positions, up to
// length().
class KvLayerSnapshot {
 public:
  virtual ~KvLayerSnapshot() = default;
  virtual int64_t length() const = 0;
  // A cache of its own that starts with these rows.
  virtual std::unique_ptr<KvCache> restore() const = 0;
  // Adds those that it keeps.
  virtual void add_buffers(KvBuffers& buffers) const = 0;
};

class KvCache {
 public:
  virtual ~KvCache() = default;

  // Committed positions.
  virtual int64_t offset() const = 0;
  // The first position whose rows are held.
  virtual int64_t begin() const = 0;
  // The position up to which rows fit without growing.
  virtual int64_t capacity() const = 0;
  // Allocated bytes of the buffers that this cache refers to. A buffer that is
  // shared with a snapshot counts in full.
  virtual size_t bytes() const = 0;
  // What an empty one comes to take for a sequence of so many positions that
  // are reserved at once and read in pieces of `step`.
  virtual size_t bytes_for(int64_t positions, int step) const = 0;
  // Adds those that it refers to. Requires: nothing pending.
  virtual void add_buffers(KvBuffers& buffers) const = 0;
  // How it holds a row: "16", "8/64" (bits, group size), "float32", "state".
  // Those that differ have no interchangeable rows.
  virtual std::string scheme() const = 0;

  // Makes room for `positions` in all, so that appends up to there neither
  // grow nor copy; for a window's rows, room for two windows at most. Never
  // shrinks. The memory is there when it returns; throws what MLX throws.
  // Requires: nothing pending.
  virtual void reserve(int64_t positions) = 0;

  // Gives memory back that was made room for and holds no rows; it is there
  // again when it is appended to. Requires: nothing pending.
  virtual void release_unused() = 0;

  // Positions appended since the last commit().
  virtual int64_t pending() const = 0;
  // The arrays that have to be evaluated before commit().
  virtual std::vector<mx::array> pending_arrays() const = 0;
  // The pending step succeeded: its arrays are evaluated.
  virtual void commit() = 0;
  // The pending step failed: forgets it. False where the rows before it went
  // with it, and the cache is good for nothing but destruction.
  [[nodiscard]] virtual bool roll_back() = 0;

  // True iff what it has of a position can be gone later without having been
  // trimmed away.
  virtual bool forgets() const = 0;
  // It can be trimmed to this position and to each up to offset().
  virtual int64_t first_resume_point() const = 0;
  // True iff trim(position) is possible.
  bool can_trim_to(int64_t position) const {
    return pending() == 0 && position >= first_resume_point() &&
        position <= offset();
  }
  // Forgets all positions from `position` on. Requires: can_trim_to(position)
  // and nothing pending.
  virtual void trim(int64_t position) = 0;

  // What it has of the positions up to `length`. Requires: can_trim_to(length).
  virtual std::shared_ptr<const KvLayerSnapshot> snapshot(
      int64_t length) const = 0;
};

} // namespace ingle
