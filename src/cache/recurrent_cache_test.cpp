// Both forms of a recurrent layer's cache: each test runs with both. A state is
// a number that each position changes: 10 * before + position.
#include "cache/recurrent_cache.h"

#include <cstring>

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "cache/array_recurrent_cache.h"
#include "cache/kv_state.h"

namespace ingle {
namespace {

constexpr RecurrentShape kShape{3, 5, 2, 4, 4, mx::float32};

struct Form {
  const char* name;
  std::unique_ptr<KvCache> (*make)();
  // A part of a step: one position with `digit`.
  void (*push)(KvCache& cache, float digit);
  float (*read)(const KvCache& cache);
};

void push_bytes(KvCache& cache, float digit) {
  const auto [before, after] = static_cast<RecurrentCache&>(cache).extend(1);
  float value = 0;
  std::memcpy(&value, before, sizeof value);
  value = 10 * value + digit;
  std::memcpy(after, &value, sizeof value);
}

float read_bytes(const KvCache& cache) {
  const auto reader = cache.snapshot(cache.offset())->restore();
  float value = 0;
  std::memcpy(
      &value,
      static_cast<RecurrentCache&>(*reader).extend(1).before,
      sizeof value);
  return value;
}

void push_arrays(KvCache& cache, float digit) {
  auto& own = static_cast<ArrayRecurrentCache&>(cache);
  const auto pushed = [&](const mx::array& x) {
    return mx::add(mx::multiply(x, mx::array(10.0f)), mx::array(digit));
  };
  const RecurrentArrays before = own.state();
  own.advance({pushed(before.conv), pushed(before.heads)}, 1);
}

float read_arrays(const KvCache& cache) {
  const auto reader = cache.snapshot(cache.offset())->restore();
  const RecurrentArrays state =
      static_cast<ArrayRecurrentCache&>(*reader).state();
  EXPECT_EQ(state.conv.shape(), mx::Shape({3, 5}));
  EXPECT_EQ(state.heads.shape(), mx::Shape({2, 4, 4}));
  const float value = mx::max(state.heads).item<float>();
  EXPECT_EQ(mx::min(state.conv).item<float>(), value);
  return value;
}

const Form kForms[] = {
    {"Bytes",
     []() -> std::unique_ptr<KvCache> {
       return std::make_unique<RecurrentCache>(100);
     },
     push_bytes,
     read_bytes},
    {"MlxArrays",
     []() -> std::unique_ptr<KvCache> {
       return std::make_unique<ArrayRecurrentCache>(kShape);
     },
     push_arrays,
     read_arrays},
};

class RecurrentCacheTest : public testing::TestWithParam<Form> {
 protected:
  static void step(KvCache& cache, std::initializer_list<float> digits) {
    for (const float digit : digits) {
      GetParam().push(cache, digit);
    }
    mx::eval(cache.pending_arrays());
    cache.commit();
  }
  static float read(const KvCache& cache) {
    return GetParam().read(cache);
  }

  const std::unique_ptr<KvCache> cache = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(
    Forms,
    RecurrentCacheTest,
    testing::ValuesIn(kForms),
    [](const auto& form) { return form.param.name; });

TEST_P(RecurrentCacheTest, StartsEmptyAndZero) {
  EXPECT_EQ(cache->offset(), 0);
  EXPECT_EQ(cache->bytes(), 0u);
  EXPECT_EQ(read(*cache), 0);
}

TEST_P(RecurrentCacheTest, StateMovesOnlyWithCommit) {
  GetParam().push(*cache, 7);
  EXPECT_EQ(cache->offset(), 0);
  EXPECT_EQ(cache->pending(), 1);
  step(*cache, {});
  EXPECT_EQ(cache->offset(), 1);
  EXPECT_EQ(cache->pending(), 0);
  EXPECT_TRUE(cache->pending_arrays().empty());
  EXPECT_EQ(read(*cache), 7);
}

TEST_P(RecurrentCacheTest, PartsOfOneStepFollowEachOther) {
  step(*cache, {1, 2});
  step(*cache, {3, 4, 5});
  EXPECT_EQ(cache->offset(), 5);
  EXPECT_EQ(read(*cache), 12345);
}

TEST_P(RecurrentCacheTest, FailedStepLeavesTheStateBeforeIt) {
  step(*cache, {1});
  step(*cache, {2});
  GetParam().push(*cache, 8);
  GetParam().push(*cache, 9);
  EXPECT_TRUE(cache->roll_back());
  EXPECT_EQ(cache->offset(), 2);
  EXPECT_EQ(read(*cache), 12);
  step(*cache, {3});
  EXPECT_EQ(read(*cache), 123);
}

TEST_P(RecurrentCacheTest, FailedFirstStepLeavesNothing) {
  GetParam().push(*cache, 8);
  EXPECT_TRUE(cache->roll_back());
  step(*cache, {3});
  EXPECT_EQ(read(*cache), 3);
}

TEST_P(RecurrentCacheTest, CanBeTrimmedOnlyToWhereItStands) {
  step(*cache, {1, 2});
  for (const int64_t position : {-1, 0, 1, 3}) {
    EXPECT_FALSE(cache->can_trim_to(position)) << position;
  }
  EXPECT_TRUE(cache->can_trim_to(2));
  cache->trim(2);
  EXPECT_EQ(read(*cache), 12);
  GetParam().push(*cache, 3);
  EXPECT_FALSE(cache->can_trim_to(2)); // a step is pending
}

TEST_P(RecurrentCacheTest, SnapshotKeepsItsStateWhileAllGoOn) {
  step(*cache, {1, 2});
  const auto snapshot = cache->snapshot(2);
  EXPECT_EQ(snapshot->length(), 2);
  const auto first = snapshot->restore();
  const auto second = snapshot->restore();
  // Past both buffers that a cache has.
  for (const float digit : {3.0f, 4.0f, 5.0f}) {
    step(*cache, {digit});
    step(*first, {digit + 1});
  }
  EXPECT_EQ(read(*cache), 12345);
  EXPECT_EQ(read(*first), 12456);
  EXPECT_EQ(second->offset(), 2);
  EXPECT_EQ(read(*second), 12);
  EXPECT_EQ(read(*snapshot->restore()), 12);
}

TEST_P(RecurrentCacheTest, BytesAreThoseOfWhatItHolds) {
  step(*cache, {1});
  const size_t held = cache->bytes();
  EXPECT_GT(held, 0u);
  for (const float digit : {2.0f, 3.0f, 4.0f}) {
    step(*cache, {digit});
    EXPECT_EQ(cache->bytes(), held);
    GetParam().push(*cache, 9);
    EXPECT_EQ(cache->bytes(), cache->bytes_for(1000, 1));
    ASSERT_TRUE(cache->roll_back());
  }
}

TEST(RecurrentCache, StepsAlternateBetweenTwoBuffers) {
  RecurrentCache cache(64);
  cache.reserve(1000);
  const size_t bytes = cache.bytes();
  const auto extend = [&] {
    const RecurrentCache::Step step = cache.extend(1);
    cache.commit();
    return step;
  };
  const auto first = extend();
  EXPECT_NE(first.before, first.after);
  for (int i = 0; i < 2; ++i) {
    const auto second = extend();
    EXPECT_EQ(second.before, first.after);
    EXPECT_EQ(second.after, first.before);
    const auto third = extend();
    EXPECT_EQ(third.before, first.before);
    EXPECT_EQ(third.after, first.after);
  }
  EXPECT_EQ(cache.bytes(), bytes);
}

TEST_P(RecurrentCacheTest, StateWithOneIsCutOnlyToWhereItStands) {
  std::vector<std::unique_ptr<KvCache>> layers;
  layers.push_back(GetParam().make());
  KvState state(std::move(layers));
  for (const float digit : {1.0f, 2.0f}) {
    GetParam().push(state.layer(0), digit);
    mx::eval(state.pending_arrays());
    ASSERT_TRUE(state.commit().is_ok());
  }
  EXPECT_EQ(state.trim(1).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(state.trim(2).is_ok());
  KvState restored = state.snapshot(2).restore();
  EXPECT_EQ(restored.offset(), 2);
  EXPECT_EQ(read(restored.layer(0)), 12);
}

} // namespace
} // namespace ingle
