// What only this form of the cache promises; kv_state_test.cpp has the rest.
#include "cache/block_kv_cache.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

std::byte* step(BlockKvCache& cache, int64_t positions) {
  std::byte* blocks = cache.extend(positions);
  cache.commit();
  return blocks;
}

TEST(BlockKvCache, WriterWithASnapshotAppendsInPlace) {
  BlockKvCache cache(2, KvBlockShape{16});
  cache.reserve(500);
  const std::byte* blocks = step(cache, 100);
  const auto snapshot = cache.snapshot(100);
  EXPECT_EQ(step(cache, 1), blocks);
  EXPECT_EQ(step(cache, 200), blocks);
}

TEST(BlockKvCache, SecondWriterOfTheSameRowsCopies) {
  BlockKvCache cache(2, KvBlockShape{16});
  cache.reserve(500);
  const std::byte* blocks = step(cache, 100);
  const auto restored = cache.snapshot(100)->restore();
  auto& second = static_cast<BlockKvCache&>(*restored);
  EXPECT_EQ(step(second, 1), blocks); // it was first, and its rows end there
  EXPECT_NE(step(cache, 1), blocks);
}

TEST(BlockKvCache, CutCacheOverwritesOnlyWhatNobodyElseSees) {
  BlockKvCache cache(2, KvBlockShape{16});
  cache.reserve(500);
  const std::byte* blocks = step(cache, 100);
  cache.trim(50);
  EXPECT_EQ(step(cache, 10), blocks);
  const auto snapshot = cache.snapshot(60);
  cache.trim(55);
  EXPECT_NE(step(cache, 1), blocks);
}

TEST(BlockKvCache, RowsOfAFailedStepAreWrittenAgainInPlace) {
  BlockKvCache cache(2, KvBlockShape{16});
  cache.reserve(500);
  const std::byte* blocks = step(cache, 100);
  const auto snapshot = cache.snapshot(100);
  EXPECT_EQ(cache.extend(7), blocks);
  EXPECT_TRUE(cache.roll_back());
  EXPECT_EQ(cache.offset(), 100);
  EXPECT_EQ(step(cache, 7), blocks);
}

} // namespace
} // namespace ingle
