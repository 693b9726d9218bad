// The tests of every form of the KV state: each runs with every factory in
// kForms, knows only KvState and KvCache, and compares with a plain vector of
// rows.
#include "cache/kv_state.h"

#include <random>
#include <set>

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "cache/plain_kv_cache.h"

namespace ingle {
namespace {

constexpr KvLayerShape kShape{2, 4, mx::float32};
constexpr size_t kLayers = 3;

// Keys and values of one position of one layer: heads x head_dim each.
using RowValues = std::vector<float>;

// What the caches ought to hold: rows[layer][position].
struct Truth {
  std::vector<std::vector<RowValues>> rows{kLayers};
};

struct Form {
  const char* name;
  std::unique_ptr<KvCache> (*make)();
};

const Form kForms[] = {
    {"MlxArrays",
     [] {
       return std::unique_ptr<KvCache>(std::make_unique<PlainKvCache>(kShape));
     }},
};

// [1, heads, n, dim] whose value at (h, i, d) is rows[i][h * dim + d].
mx::array to_array(const std::vector<RowValues>& rows) {
  const int n = static_cast<int>(rows.size());
  std::vector<float> values;
  for (int h = 0; h < kShape.kv_heads; ++h) {
    for (const auto& row : rows) {
      values.insert(
          values.end(),
          row.begin() + h * kShape.head_dim,
          row.begin() + (h + 1) * kShape.head_dim);
    }
  }
  return mx::array(
      values.data(), {1, kShape.kv_heads, n, kShape.head_dim}, mx::float32);
}

class KvStateTest : public testing::TestWithParam<Form> {
 protected:
  static KvState make_state() {
    std::vector<std::unique_ptr<KvCache>> layers;
    for (size_t i = 0; i < kLayers; ++i) {
      layers.push_back(GetParam().make());
    }
    return KvState(std::move(layers));
  }

  std::vector<RowValues> random_rows(int n) {
    std::vector<RowValues> rows(static_cast<size_t>(n));
    for (auto& row : rows) {
      row.resize(static_cast<size_t>(kShape.kv_heads * kShape.head_dim));
      for (auto& value : row) {
        value = std::uniform_real_distribution<float>(-1, 1)(random_);
      }
    }
    return rows;
  }

  static mx::array negated(const std::vector<RowValues>& rows) {
    return mx::negative(to_array(rows));
  }

  // One step of n positions in every layer. Values are the negated keys.
  std::vector<KvView> append(KvState& state, Truth& truth, int n) {
    std::vector<KvView> views;
    for (size_t i = 0; i < kLayers; ++i) {
      const auto rows = random_rows(n);
      views.push_back(state.layer(i).append(to_array(rows), negated(rows)));
      auto& expected = truth.rows[i];
      expected.insert(expected.end(), rows.begin(), rows.end());
    }
    mx::eval(state.pending_arrays());
    EXPECT_TRUE(state.commit().is_ok());
    return views;
  }

  // Looks at the rows through a step of one position, as attention would.
  void expect_holds(KvState& state, Truth truth) {
    for (const auto& layer : truth.rows) {
      ASSERT_EQ(state.offset(), static_cast<int64_t>(layer.size()));
    }
    const KvSnapshot before = state.snapshot(state.offset());
    KvState reader = before.restore();
    const auto views = append(reader, truth, 1);
    for (size_t i = 0; i < kLayers; ++i) {
      const auto expected = truth.rows[i];
      EXPECT_TRUE(
          mx::array_equal(views[i].keys, to_array(expected)).item<bool>());
      EXPECT_TRUE(
          mx::array_equal(views[i].values, negated(expected)).item<bool>());
    }
  }

  std::mt19937 random_{7};
};

INSTANTIATE_TEST_SUITE_P(
    Forms,
    KvStateTest,
    testing::ValuesIn(kForms),
    [](const auto& form) { return form.param.name; });

TEST_P(KvStateTest, StartsEmpty) {
  KvState state = make_state();
  EXPECT_EQ(state.offset(), 0);
  EXPECT_EQ(state.bytes(), 0u);
  EXPECT_TRUE(state.is_intact());
}

TEST_P(KvStateTest, OffsetMovesOnlyWithCommit) {
  KvState state = make_state();
  for (size_t i = 0; i < kLayers; ++i) {
    const auto rows = random_rows(5);
    static_cast<void>(state.layer(i).append(to_array(rows), to_array(rows)));
  }
  EXPECT_EQ(state.offset(), 0);
  mx::eval(state.pending_arrays());
  EXPECT_TRUE(state.commit().is_ok());
  EXPECT_EQ(state.offset(), 5);
  EXPECT_TRUE(state.pending_arrays().empty());
}

TEST_P(KvStateTest, SeveralAppendsInOneStepFollowEachOther) {
  KvState state = make_state();
  Truth truth;
  for (size_t i = 0; i < kLayers; ++i) {
    for (int n : {3, 1, 4}) {
      const auto rows = random_rows(n);
      static_cast<void>(state.layer(i).append(to_array(rows), negated(rows)));
      truth.rows[i].insert(truth.rows[i].end(), rows.begin(), rows.end());
    }
  }
  mx::eval(state.pending_arrays());
  ASSERT_TRUE(state.commit().is_ok());
  expect_holds(state, truth);
}

TEST_P(KvStateTest, UnequalLayersBreakTheState) {
  KvState state = make_state();
  for (size_t i = 0; i < kLayers; ++i) {
    const auto rows = random_rows(i == 1 ? 2 : 3);
    static_cast<void>(state.layer(i).append(to_array(rows), to_array(rows)));
  }
  mx::eval(state.pending_arrays());
  EXPECT_EQ(state.commit().code(), StatusCode::kInternal);
  EXPECT_FALSE(state.is_intact());
}

TEST_P(KvStateTest, AbandonedStateIsNotIntact) {
  KvState state = make_state();
  const auto rows = random_rows(2);
  static_cast<void>(state.layer(0).append(to_array(rows), to_array(rows)));
  state.abandon();
  EXPECT_FALSE(state.is_intact());
  EXPECT_EQ(state.bytes(), 0u);
}

// Acceptance 46: growth after odd prefill lengths preserves rows; copies are
// amortised.
TEST_P(KvStateTest, kv_growth) {
  KvState state = make_state();
  Truth truth;
  std::set<int64_t> capacities;
  append(state, truth, 37);
  for (int i = 0; i < 600; ++i) {
    append(state, truth, 1);
    capacities.insert(state.layer(0).capacity());
  }
  EXPECT_LE(capacities.size(), 8u); // x 1.5 from 64: 64 96 144 216 324 486 729
  expect_holds(state, truth);
}

TEST_P(KvStateTest, ReserveMakesAppendsStayInPlace) {
  KvState state = make_state();
  state.reserve(200);
  Truth truth;
  const auto address_after_append = [&](int n) {
    auto views = append(state, truth, n);
    mx::eval(views[0].keys);
    return views[0].keys.data<float>();
  };
  const float* address = address_after_append(50);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(address_after_append(1), address);
  }
  EXPECT_EQ(state.layer(0).capacity(), 200);
  expect_holds(state, truth);
}

// Acceptance 47: kv_trim_then_extend equals a never-trimmed run.
TEST_P(KvStateTest, kv_trim_then_extend) {
  KvState state = make_state();
  Truth truth;
  append(state, truth, 90);
  ASSERT_TRUE(state.trim(41).is_ok());
  for (auto& rows : truth.rows) {
    rows.resize(41);
  }
  append(state, truth, 7);
  expect_holds(state, truth);
}

TEST_P(KvStateTest, TrimPastTheEndIsRefused) {
  KvState state = make_state();
  Truth truth;
  append(state, truth, 3);
  EXPECT_FALSE(state.trim(4).is_ok());
  EXPECT_FALSE(state.trim(-1).is_ok());
  EXPECT_EQ(state.offset(), 3);
}

TEST_P(KvStateTest, SnapshotKeepsItsRowsWhileTheWriterGoesOn) {
  KvState state = make_state();
  Truth truth;
  append(state, truth, 20);
  const KvSnapshot snapshot = state.snapshot(12);
  Truth then;
  for (size_t i = 0; i < kLayers; ++i) {
    then.rows[i].assign(truth.rows[i].begin(), truth.rows[i].begin() + 12);
  }
  ASSERT_TRUE(state.trim(5).is_ok());
  for (auto& rows : truth.rows) {
    rows.resize(5);
  }
  append(state, truth, 30); // writes where the snapshot's rows were
  KvState restored = snapshot.restore();
  expect_holds(restored, then);
  expect_holds(state, truth);
}

// Random appends, trims, snapshots and restores on several states at once;
// each always holds what its own history says.
TEST_P(KvStateTest, RandomHistoriesHoldWhatTheyShould) {
  std::vector<std::pair<KvState, Truth>> states;
  states.emplace_back(make_state(), Truth{});
  const auto pick = [&](int64_t limit) {
    return std::uniform_int_distribution<int64_t>(0, limit)(random_);
  };
  for (int step = 0; step < 300; ++step) {
    const auto at =
        static_cast<size_t>(pick(static_cast<int64_t>(states.size()) - 1));
    auto& [state, truth] = states[at];
    const int64_t length = state.offset();
    switch (pick(4)) {
      case 0:
      case 1:
        append(state, truth, static_cast<int>(1 + pick(40)));
        break;
      case 2: {
        const int64_t position = pick(length);
        ASSERT_TRUE(state.trim(position).is_ok());
        for (auto& rows : truth.rows) {
          rows.resize(static_cast<size_t>(position));
        }
        break;
      }
      case 3: {
        const int64_t position = pick(length);
        Truth forked = truth;
        for (auto& rows : forked.rows) {
          rows.resize(static_cast<size_t>(position));
        }
        KvState restored = state.snapshot(position).restore();
        if (states.size() < 5) {
          states.emplace_back(std::move(restored), std::move(forked));
        } else {
          states[(at + 1) % states.size()] = {
              std::move(restored), std::move(forked)};
        }
        break;
      }
      default:
        expect_holds(state, truth);
    }
  }
  for (auto& [state, truth] : states) {
    expect_holds(state, truth);
  }
}

} // namespace
} // namespace ingle
