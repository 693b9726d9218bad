#include "cache/prompt_cache.h"

#include <algorithm>
#include <utility>

namespace ingle {
namespace {

constexpr size_t kCheckpointShare = 4; // of the cache one part in so many

bool is_prefix(
    const std::vector<TokenId>& tokens,
    const std::vector<TokenId>& of) {
  return tokens.size() <= of.size() &&
      std::equal(tokens.begin(), tokens.end(), of.begin());
}

} // namespace

void PromptCache::BufferCount::add(const KvBuffers& buffers) {
  for (const KvBuffer& buffer : buffers) {
    Use& use = uses_[buffer.id];
    ++use.count;
    if (buffer.bytes > use.bytes) { // one that grew since it was counted
      bytes_ += buffer.bytes - use.bytes;
      use.bytes = buffer.bytes;
    }
  }
}

void PromptCache::BufferCount::remove(const KvBuffers& buffers) {
  for (const KvBuffer& buffer : buffers) {
    const auto use = uses_.find(buffer.id);
    if (--use->second.count == 0) {
      bytes_ -= use->second.bytes;
      uses_.erase(use);
    }
  }
}

std::vector<ReuseSource> PromptCache::sources(
    std::string_view space,
    std::vector<EntryId>& ids) const {
  std::vector<ReuseSource> sources;
  ids.clear();
  for (const Entry& entry : entries_) {
    if (entry.space == space) {
      sources.push_back(
          {entry.tokens,
           entry.kv.state().offset(),
           entry.kv.state().first_resume_point(),
           entry.kv.checkpoint_positions(),
           /*is_idle=*/true});
      ids.push_back(entry.id);
    }
  }
  return sources;
}

ResumableKv PromptCache::take(EntryId id, int64_t length, bool moves) {
  const auto entry = find(id);
  ++hits_;
  if (moves) {
    ResumableKv kv = std::move(entry->kv);
    erase(entry);
    return kv;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->kv.fork(length);
}

void PromptCache::put(
    std::string_view space,
    std::vector<TokenId> tokens,
    ResumableKv kv) {
  if (max_bytes_ == 0 || tokens.empty() || !kv.state().is_intact()) {
    return;
  }
  kv.state().release_unused();
  entries_.push_front(
      {++last_id_,
       std::string(space),
       std::move(tokens),
       std::move(kv),
       {},
       {}});
  const auto added = entries_.begin();
  count_buffers(*added);
  for (auto other = std::next(added); other != entries_.end();) {
    const auto next = std::next(other);
    if (covers(*added, *other)) {
      erase(other);
    } else if (covers(*other, *added)) {
      entries_.splice(entries_.begin(), entries_, other);
      erase(added);
      break;
    }
    other = next;
  }
  while (all_.bytes() > max_bytes_ && entries_.size() > 1) {
    ++evicted_;
    erase(std::prev(entries_.end()));
  }
  if (all_.bytes() > max_bytes_) {
    erase(entries_.begin());
  }
  limit_checkpoints();
}

void PromptCache::shrink_to(size_t bytes) {
  while (all_.bytes() > bytes) {
    ++evicted_;
    erase(std::prev(entries_.end()));
  }
}

PromptCacheStats PromptCache::stats() const {
  PromptCacheStats stats;
  stats.entries = entries_.size();
  stats.bytes = all_.bytes();
  stats.max_bytes = max_bytes_;
  stats.checkpoint_bytes = checkpoints_.bytes();
  stats.hits = hits_;
  stats.misses = misses_;
  stats.evicted = evicted_;
  return stats;
}

PromptCache::Entries::iterator PromptCache::find(EntryId id) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) {
    return each.id == id;
  });
}

void PromptCache::count_buffers(Entry& entry) {
  for (const KvCheckpoint& checkpoint : entry.kv.checkpoints()) {
    checkpoint.add_buffers(entry.checkpoint_buffers);
  }
  entry.buffers = entry.checkpoint_buffers;
  entry.kv.state().add_buffers(entry.buffers);
  all_.add(entry.buffers);
  checkpoints_.add(entry.checkpoint_buffers);
}

void PromptCache::uncount_buffers(Entry& entry) {
  all_.remove(std::exchange(entry.buffers, {}));
  checkpoints_.remove(std::exchange(entry.checkpoint_buffers, {}));
}

void PromptCache::erase(Entries::iterator entry) {
  uncount_buffers(*entry);
  entries_.erase(entry);
}

void PromptCache::limit_checkpoints() {
  const size_t most = max_bytes_ / kCheckpointShare;
  for (auto entry = entries_.rbegin();
       entry != entries_.rend() && checkpoints_.bytes() > most;
       ++entry) {
    uncount_buffers(*entry);
    entry->kv.drop_checkpoints();
    count_buffers(*entry);
  }
}

bool PromptCache::covers(const Entry& entry, const Entry& covered) {
  return entry.space == covered.space &&
      is_prefix(covered.tokens, entry.tokens) &&
      (!entry.kv.state().forgets() ||
       covered.tokens.size() == entry.tokens.size());
}

} // namespace ingle
