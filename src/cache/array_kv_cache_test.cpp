// Quantised rows in MLX arrays: always what mx::quantize() makes of the rows.
// kv_state_test.cpp has the rest.
#include "cache/array_kv_cache.h"

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/random.h>
#include <mlx/transforms.h>

namespace ingle {
namespace {

constexpr int kHeads = 2;
constexpr int kDim = 64;

mx::array random_rows(int count) {
  mx::array rows = mx::random::normal({1, kHeads, count, kDim}, mx::float32);
  mx::eval(rows);
  return rows;
}

mx::array from_position(const mx::array& x, int64_t begin) {
  return mx::slice(x, {0, 0, static_cast<int>(begin), 0}, x.shape());
}

void expect_held(
    const KvRows& held,
    const mx::array& all,
    int64_t begin,
    const KvQuantization& kv) {
  const auto parts =
      mx::quantize(from_position(all, begin), kv.group_size, kv.bits);
  EXPECT_TRUE(mx::array_equal(held.rows, parts[0]).item<bool>());
  EXPECT_TRUE(mx::array_equal(*held.scales, parts[1]).item<bool>());
  EXPECT_TRUE(mx::array_equal(*held.biases, parts[2]).item<bool>());
}

// All that a cache was given.
struct Rows {
  mx::array keys = random_rows(0);
  mx::array values = random_rows(0);
};

class QuantizedArrayKvCache : public testing::TestWithParam<KvQuantization> {
 protected:
  // A step; looks at what the cache then holds.
  static void append(KvCache& to, int count, Rows& all) {
    auto& cache = static_cast<ArrayKvCache&>(to);
    const mx::array keys = random_rows(count);
    const mx::array values = random_rows(count);
    all.keys = mx::concatenate({all.keys, keys}, 2);
    all.values = mx::concatenate({all.values, values}, 2);
    const KvView view = cache.append(keys, values);
    mx::eval(cache.pending_arrays());
    cache.commit();
    EXPECT_EQ(view.begin, cache.begin());
    EXPECT_EQ(view.begin + view.keys.rows.shape(2), cache.offset());
    expect_held(view.keys, all.keys, view.begin, GetParam());
    expect_held(view.values, all.values, view.begin, GetParam());
  }

  Rows rows;
};

INSTANTIATE_TEST_SUITE_P(
    Schemes,
    QuantizedArrayKvCache,
    testing::Values(
        KvQuantization{8, 64},
        KvQuantization{4, 32},
        KvQuantization{8, 32},
        KvQuantization{4, 64}));

// Acceptance 53.
TEST_P(QuantizedArrayKvCache, quant_cache_rows_equal_quantize) {
  ArrayKvCache cache({kHeads, kDim, mx::float32, GetParam()});
  append(cache, 37, rows);
  for (int i = 0; i < 60; ++i) {
    append(cache, 1, rows); // grows on the way
  }
  append(cache, 150, rows);
  EXPECT_EQ(cache.begin(), 0);
}

TEST_P(QuantizedArrayKvCache, TakesTheBytesOfItsBits) {
  ArrayKvCache cache({kHeads, kDim, mx::float32, GetParam()});
  cache.reserve(100);
  const auto [bits, group_size] = GetParam();
  const auto row = static_cast<size_t>(
      kDim * bits / 8 + 2 * 4 * kDim / group_size); // scales, biases in f32
  EXPECT_EQ(cache.bytes(), 2 * kHeads * 100 * row);
}

// Acceptance 54.
TEST_P(QuantizedArrayKvCache, window_quant_checkpoints) {
  ArrayKvCache cache({kHeads, kDim, mx::float32, GetParam(), 20});
  append(cache, 70, rows);
  for (int i = 0; i < 50; ++i) {
    append(cache, 1, rows);
  }
  EXPECT_GT(cache.begin(), 0);
  const auto saved = cache.snapshot(cache.offset());
  Rows others = rows;
  for (int i = 0; i < 3; ++i) {
    append(cache, 17, rows);
  }
  const auto restored = saved->restore();
  EXPECT_EQ(restored->offset(), 120);
  for (int i = 0; i < 40; ++i) {
    append(*restored, 1, others);
  }
}

} // namespace
} // namespace ingle
