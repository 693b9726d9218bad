// What sequences that ended have read, kept in memory for prompts that begin
// the same: the RAM tier.
//
// An entry is a whole sequence: its tokens, its KV state and its checkpoints.
// A prompt that goes on where an entry ends is handed the entry; any other
// takes a copy of a prefix, and the entry stays.
//
// Entries are kept apart by space: a string of bytes that says all that KV
// depends on but the tokens (adapters by weights and scale, how keys and values
// are held). Within one, equal tokens have interchangeable KV.
//
// The cap holds after every call: all buffers that entries and checkpoints
// refer to, each once and whole. The least recently used entries go first.
//
// Threads: the engine thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "cache/plan_reuse.h"
#include "cache/resumable_kv.h"

namespace ingle {

struct PromptCacheStats {
  size_t entries = 0;
  size_t bytes = 0;
  size_t max_bytes = 0;
  size_t checkpoint_bytes = 0; // of bytes
  uint64_t hits = 0; // prompts that took a prefix over
  uint64_t misses = 0; // those that asked and found none
  uint64_t evicted = 0; // entries that made room
};

class PromptCache {
 public:
  // 0: nothing is kept. A quarter of it is for checkpoints.
  explicit PromptCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  using EntryId = uint64_t;
  // What it has in a space, the most recently used first, with the entries'
  // numbers. Valid until the cache changes.
  std::vector<ReuseSource> sources(
      std::string_view space,
      std::vector<EntryId>& ids) const;

  // By a plan for the entry: handed over, or a copy up to `length`, which makes
  // it the most recently used. Counts a hit.
  ResumableKv take(EntryId id, int64_t length, bool moves);
  void count_miss() {
    ++misses_;
  }

  // `kv` has read `tokens`. One that is too large is dropped, as is what has
  // read no token or is broken; one that another covers replaces it, or is
  // dropped for it.
  void put(std::string_view space, std::vector<TokenId> tokens, ResumableKv kv);

  // Drops entries until they take so many bytes at most.
  void shrink_to(size_t bytes);
  void clear() {
    shrink_to(0);
  }

  PromptCacheStats stats() const;

 private:
  struct Entry {
    EntryId id = 0;
    std::string space;
    std::vector<TokenId> tokens;
    ResumableKv kv;
    KvBuffers buffers; // that are counted for it
    KvBuffers checkpoint_buffers;
  };
  using Entries = std::list<Entry>; // the most recently used first

  // Bytes of buffers, each once, however many entries refer to it.
  class BufferCount {
   public:
    void add(const KvBuffers& buffers);
    void remove(const KvBuffers& buffers);
    size_t bytes() const {
      return bytes_;
    }

   private:
    struct Use {
      size_t count = 0;
      size_t bytes = 0;
    };
    std::map<const void*, Use> uses_;
    size_t bytes_ = 0;
  };

  Entries::iterator find(EntryId id);
  void count_buffers(Entry& entry);
  void uncount_buffers(Entry& entry);
  void erase(Entries::iterator entry);
  void limit_checkpoints();
  // True iff whatever a prompt could take of `covered` it can take of `entry`.
  static bool covers(const Entry& entry, const Entry& covered);

  const size_t max_bytes_;
  Entries entries_;
  BufferCount all_;
  BufferCount checkpoints_;
  EntryId last_id_ = 0;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
  uint64_t evicted_ = 0;
};

} // namespace ingle
