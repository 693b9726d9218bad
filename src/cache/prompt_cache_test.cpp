#include "cache/prompt_cache.h"

#include <memory>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "cache/block_kv_cache.h"
#include "cache/recurrent_cache.h"

namespace ingle {
namespace {

constexpr KvBlockShape kBlock{64};
constexpr size_t kStateBytes = 4096;

// Bytes of a block of positions in the one layer that plain states have.
size_t block_bytes() {
  return kBlock.bytes();
}

std::vector<TokenId> ids(const std::string& text) {
  return {text.begin(), text.end()};
}

void read(KvState& state, int64_t positions) {
  static_cast<BlockKvCache&>(state.layer(0)).extend(positions);
  ASSERT_TRUE(state.commit().is_ok());
}

// A state of one layer that keeps every row.
ResumableKv plain(int64_t positions) {
  std::vector<std::unique_ptr<KvCache>> layers;
  layers.push_back(std::make_unique<BlockKvCache>(1, kBlock));
  ResumableKv kv{KvState(std::move(layers))};
  read(kv.state(), positions);
  return kv;
}

// One that keeps every row and one that is recurrent; checkpoints are taken at
// these positions.
ResumableKv hybrid(int64_t positions, std::vector<int64_t> checkpoints) {
  std::vector<std::unique_ptr<KvCache>> layers;
  layers.push_back(std::make_unique<BlockKvCache>(1, kBlock));
  layers.push_back(std::make_unique<RecurrentCache>(kStateBytes));
  ResumableKv kv{KvState(std::move(layers))};
  checkpoints.push_back(positions);
  for (const int64_t end : checkpoints) {
    const int64_t more = end - kv.state().offset();
    static_cast<BlockKvCache&>(kv.state().layer(0)).extend(more);
    static_cast<RecurrentCache&>(kv.state().layer(1)).extend(more);
    EXPECT_TRUE(kv.state().commit().is_ok());
    if (end < positions) {
      kv.keep_checkpoint();
    }
  }
  return kv;
}

class PromptCacheTest : public testing::Test {
 protected:
  void put(const std::string& text, const std::string& space = "") {
    cache_.put(space, ids(text), plain(std::ssize(text)));
  }

  // What a prompt finds, and takes.
  ReusePlan take(const std::string& prompt, const std::string& space = "") {
    std::vector<PromptCache::EntryId> entries;
    const auto tokens = ids(prompt);
    const auto sources = cache_.sources(space, entries);
    const ReusePlan plan = plan_reuse(tokens, sources);
    if (plan.length > 0) {
      taken_ = cache_.take(entries[plan.source], plan.length, plan.moves);
      EXPECT_EQ(taken_->state().offset(), plan.length);
    } else {
      cache_.count_miss();
    }
    return plan;
  }

  // What is found of a text, without taking it.
  int64_t found(const std::string& text, const std::string& space = "") {
    std::vector<PromptCache::EntryId> entries;
    const auto tokens = ids(text + "!");
    return plan_reuse(tokens, cache_.sources(space, entries)).length;
  }

  PromptCache cache_{size_t{64} << 20};
  std::optional<ResumableKv> taken_;
};

// Acceptance 65.
TEST_F(PromptCacheTest, pc_longest_prefix_wins) {
  put("system");
  put("system user");
  put("system usual");
  const ReusePlan plan = take("system user asks");
  EXPECT_EQ(plan.length, 11);
  EXPECT_TRUE(plan.moves);
  EXPECT_EQ(cache_.stats().hits, 1u);
}

// Acceptance 66.
TEST_F(PromptCacheTest, pc_divergent_trim) {
  put("system one");
  const ReusePlan plan = take("system two");
  EXPECT_EQ(plan.length, 7);
  EXPECT_FALSE(plan.moves);
  EXPECT_EQ(found("system one"), 10) << "the entry stays";
}

// Acceptance 67.
TEST_F(PromptCacheTest, pc_exact_prompt_trims_one) {
  put("system");
  EXPECT_EQ(take("system").length, 5);
  EXPECT_EQ(found("system"), 6);
}

// Acceptance 68.
TEST_F(PromptCacheTest, pc_untrimmable_resumes_at_checkpoint) {
  cache_.put("", ids("system user"), hybrid(11, {6, 8}));
  const ReusePlan plan = take("system use");
  EXPECT_EQ(plan.length, 8);
  EXPECT_EQ(taken_->checkpoint_positions(), (std::vector<int64_t>{6, 8}));
  EXPECT_EQ(take("system").length, 0) << "none is early enough";
  EXPECT_EQ(take("system,").length, 6);
  EXPECT_EQ(take("system user!").length, 11);
  EXPECT_EQ(take("system user!").length, 0) << "the whole was handed over";
}

// Acceptance 69.
TEST_F(PromptCacheTest, pc_lru_byte_cap_never_fresh) {
  PromptCache cache(3 * block_bytes());
  for (const char* text : {"a1", "b2", "c3", "d4"}) {
    cache.put("", ids(text), plain(2));
    EXPECT_LE(cache.stats().bytes, cache.stats().max_bytes);
  }
  std::vector<PromptCache::EntryId> entries;
  EXPECT_EQ(cache.sources("", entries).size(), 3u);
  EXPECT_EQ(cache.sources("", entries)[0].tokens[0], 'd');
  EXPECT_EQ(cache.stats().evicted, 1u);
}

// Acceptance 70.
TEST_F(PromptCacheTest, pc_take_refreshes) {
  cache_.put("", ids("a1"), plain(2));
  cache_.put("", ids("b2"), plain(2));
  EXPECT_EQ(take("ax").length, 1);
  cache_.shrink_to(block_bytes());
  EXPECT_EQ(found("a1"), 2);
  EXPECT_EQ(found("b2"), 0);
}

// Acceptance 71.
TEST_F(PromptCacheTest, pc_oversize_disposed) {
  PromptCache cache(2 * block_bytes());
  cache.put("", ids("small"), plain(5));
  cache.put(
      "",
      std::vector<TokenId>(3 * kBlockPositions),
      plain(3 * kBlockPositions));
  EXPECT_EQ(cache.stats().bytes, 0u) << "nor does what made room come back";
  PromptCache off(0);
  off.put("", ids("a"), plain(1));
  EXPECT_EQ(off.stats().entries, 0u);
}

// Acceptance 72.
TEST_F(PromptCacheTest, pc_clear) {
  put("one");
  put("two");
  cache_.clear();
  EXPECT_EQ(cache_.stats().entries, 0u);
  EXPECT_EQ(cache_.stats().bytes, 0u);
  EXPECT_EQ(found("one"), 0);
}

// Acceptance 73.
TEST_F(PromptCacheTest, pc_namespace_isolated) {
  put("system", "a");
  EXPECT_EQ(take("system user", "b").length, 0);
  EXPECT_EQ(take("system user", "").length, 0);
  EXPECT_EQ(cache_.stats().misses, 2u);
  EXPECT_EQ(take("system user", "a").length, 6);
}

TEST_F(PromptCacheTest, WhatWasHandedOverIsGoneAndItsBytesAreNotCounted) {
  put("system");
  EXPECT_TRUE(take("system user").moves);
  EXPECT_EQ(cache_.stats().entries, 0u);
  EXPECT_EQ(cache_.stats().bytes, 0u);
}

TEST_F(PromptCacheTest, TheSameSequenceTwiceIsOneEntry) {
  put("system user");
  put("system user");
  EXPECT_EQ(cache_.stats().entries, 1u);
  put("system");
  EXPECT_EQ(cache_.stats().entries, 1u) << "the longer one has it";
  put("system user asks");
  EXPECT_EQ(cache_.stats().entries, 1u) << "the longer one has it";
  EXPECT_EQ(found("system user asks"), 16);
}

TEST_F(PromptCacheTest, AShorterRecurrentStateIsNotCoveredByALongerOne) {
  cache_.put("", ids("system"), hybrid(6, {}));
  cache_.put("", ids("system user"), hybrid(11, {}));
  EXPECT_EQ(cache_.stats().entries, 2u);
  EXPECT_EQ(found("system"), 6);
}

TEST_F(PromptCacheTest, ASharedBufferCountsOnce) {
  put("system user");
  ASSERT_EQ(take("system x").length, 7);
  const size_t before = cache_.stats().bytes;
  cache_.put("other", ids("system "), std::move(*taken_));
  EXPECT_EQ(cache_.stats().entries, 2u);
  EXPECT_EQ(cache_.stats().bytes, before);
}

TEST_F(PromptCacheTest, ReservedRowsThatAreEmptyDoNotCount) {
  ResumableKv kv = plain(3);
  kv.state().reserve(100 * kBlockPositions);
  cache_.put("", ids("abc"), std::move(kv));
  EXPECT_EQ(cache_.stats().bytes, block_bytes());
}

TEST_F(PromptCacheTest, CheckpointsHaveACapOfTheirOwn) {
  PromptCache cache(8 * kStateBytes + 4 * block_bytes());
  const size_t most = cache.stats().max_bytes / 4;
  for (int i = 0; i < 20; ++i) {
    const std::string text = "system " + std::to_string(i);
    cache.put("", ids(text), hybrid(std::ssize(text), {2, 4, 6}));
    EXPECT_LE(cache.stats().checkpoint_bytes, most);
    EXPECT_LE(cache.stats().bytes, cache.stats().max_bytes);
  }
}

TEST(ResumableKv, TheFirstAndTheNewestCheckpointsStay) {
  const ResumableKv kv = hybrid(20, {3, 6, 9, 12});
  EXPECT_EQ(kv.checkpoint_positions(), (std::vector<int64_t>{3, 9, 12}));
}

TEST(ResumableKv, WhatKeepsAllRowsNeedsNoCheckpoints) {
  ResumableKv kv = plain(20);
  kv.keep_checkpoint();
  EXPECT_TRUE(kv.checkpoints().empty());
  EXPECT_EQ(kv.fork(7).state().offset(), 7);
}

// The cap, the count of bytes and of entries hold whatever happens.
TEST(PromptCacheProperty, CapsHoldInAnyOrderOfCalls) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return random() % n; };
    PromptCache cache((2 + below(10)) * block_bytes());
    std::vector<std::pair<std::vector<TokenId>, ResumableKv>> live;
    for (int i = 0; i < 200; ++i) {
      std::vector<TokenId> tokens(1 + below(2 * kBlockPositions));
      for (size_t at = 0; at < tokens.size(); ++at) {
        tokens[at] = static_cast<TokenId>(at < 20 ? 0 : below(2));
      }
      std::vector<PromptCache::EntryId> entries;
      const auto sources = cache.sources("", entries);
      const ReusePlan plan = plan_reuse(tokens, sources);
      ResumableKv kv = plan.length > 0
          ? cache.take(entries[plan.source], plan.length, plan.moves)
          : plain(1);
      ASSERT_EQ(kv.state().offset(), std::max<int64_t>(1, plan.length));
      read(kv.state(), std::ssize(tokens) - kv.state().offset());
      live.emplace_back(std::move(tokens), std::move(kv));
      if (below(3) == 0) {
        cache.shrink_to(below(cache.stats().max_bytes));
      }
      while (live.size() > below(4)) {
        cache.put(
            "", std::move(live.back().first), std::move(live.back().second));
        live.pop_back();
      }
      ASSERT_LE(cache.stats().bytes, cache.stats().max_bytes);
      ASSERT_EQ(cache.stats().bytes == 0, cache.stats().entries == 0);
    }
    cache.clear();
    EXPECT_EQ(cache.stats().bytes, 0u);
    EXPECT_EQ(cache.stats().checkpoint_bytes, 0u);
  }
}

} // namespace
} // namespace ingle
