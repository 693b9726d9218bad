// The tests of every form of the KV state: each runs with every form in kForms,
// knows only KvState and KvCache, and compares with a plain vector of rows.
#include "cache/kv_state.h"

#include <cstring>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "cache/array_kv_cache.h"
#include "cache/block_kv_cache.h"

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
  void (*append)(KvCache& cache, const std::vector<RowValues>& rows);
  // Looks at the rows through a step of one position, as attention would.
  std::vector<RowValues> (*read)(const KvCache& cache);
  // Where the rows are after such a step.
  const void* (*address)(KvCache& cache);
  bool survives_failure; // keeps what was committed
  int window = 0; // 0: none
};

constexpr int kArrayWindow = 100;
constexpr int kBlockWindow = 300;

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

// The first `count` rows of what to_array() makes.
std::vector<RowValues> to_rows(const mx::array& array, int64_t count) {
  const mx::array by_position = mx::contiguous(mx::transpose(
      mx::slice(
          array,
          {0, 0, 0, 0},
          {1, kShape.kv_heads, static_cast<int>(count), kShape.head_dim}),
      {0, 2, 1, 3}));
  std::vector<RowValues> rows;
  if (count == 0) {
    return rows;
  }
  mx::eval(by_position);
  const float* at = by_position.data<float>();
  for (int64_t i = 0; i < count; ++i) {
    rows.emplace_back(at, at + kShape.kv_heads * kShape.head_dim);
    at += kShape.kv_heads * kShape.head_dim;
  }
  return rows;
}

// How many rows a cache holds.
int64_t held(const KvCache& cache) {
  return cache.offset() - cache.begin();
}

// Keys are the rows, values the negated rows.
KvView append_array(KvCache& cache, const std::vector<RowValues>& rows) {
  return static_cast<ArrayKvCache&>(cache).append(
      to_array(rows), mx::negative(to_array(rows)));
}

const RowValues kAnyRow(
    static_cast<size_t>(kShape.kv_heads* kShape.head_dim),
    7);

std::vector<RowValues> read_array(const KvCache& cache) {
  const auto reader = cache.snapshot(cache.offset())->restore();
  const KvView view = append_array(*reader, {kAnyRow});
  // To append may drop what the cache itself still holds.
  const int64_t count = cache.offset() - view.begin;
  auto rows = to_rows(view.keys.rows, count);
  EXPECT_EQ(rows, to_rows(mx::negative(view.values.rows), count));
  return rows;
}

// Where element i of a row stands, as a dword of its own: the kernels would
// keep two elements there, but nothing here looks at them.
std::byte* element_in(std::byte* blocks, int64_t position, size_t element) {
  const KvBlockShape shape{kShape.head_dim};
  const auto dim = static_cast<size_t>(kShape.head_dim);
  const auto block =
      static_cast<size_t>(position / kBlockPositions * kShape.kv_heads);
  return blocks + (block + element / dim) * shape.bytes() +
      (element % dim * kBlockPositions +
       static_cast<size_t>(position % kBlockPositions)) *
      sizeof(float);
}

void append_blocks(KvCache& cache, const std::vector<RowValues>& rows) {
  auto& blocks = static_cast<BlockKvCache&>(cache);
  int64_t position = blocks.offset() + blocks.pending();
  std::byte* data = blocks.extend(static_cast<int64_t>(rows.size()));
  for (const RowValues& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      std::memcpy(
          element_in(data, position - blocks.begin(), i),
          &row[i],
          sizeof(float));
    }
    ++position;
  }
}

std::vector<RowValues> read_blocks(const KvCache& cache) {
  const auto reader = cache.snapshot(cache.offset())->restore();
  std::byte* data = static_cast<BlockKvCache&>(*reader).extend(1);
  std::vector<RowValues> rows;
  for (int64_t at = 0; at < held(*reader); ++at) {
    RowValues row(kAnyRow.size());
    for (size_t i = 0; i < row.size(); ++i) {
      std::memcpy(&row[i], element_in(data, at, i), sizeof(float));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

template <int kWindow>
std::unique_ptr<KvCache> make_array() {
  KvLayerShape shape = kShape;
  shape.window = kWindow;
  return std::make_unique<ArrayKvCache>(shape);
}

const void* address_of_array(KvCache& cache) {
  const KvView view = append_array(cache, {kAnyRow});
  mx::eval(view.keys.rows, view.values.rows);
  return view.keys.rows.data<float>();
}

template <int kWindow>
std::unique_ptr<KvCache> make_blocks() {
  return std::make_unique<BlockKvCache>(
      kShape.kv_heads, KvBlockShape{kShape.head_dim}, kWindow);
}

const void* address_of_blocks(KvCache& cache) {
  append_blocks(cache, {kAnyRow});
  return static_cast<BlockKvCache&>(cache).extend(0);
}

void append_to_array(KvCache& cache, const std::vector<RowValues>& rows) {
  append_array(cache, rows);
}

const Form kForms[] = {
    {"MlxArrays",
     make_array<0>,
     append_to_array,
     read_array,
     address_of_array,
     false},
    {"Blocks",
     make_blocks<0>,
     append_blocks,
     read_blocks,
     address_of_blocks,
     true},
    {"MlxArraysOfAWindow",
     make_array<kArrayWindow>,
     append_to_array,
     read_array,
     address_of_array,
     false,
     kArrayWindow},
    {"BlocksOfAWindow",
     make_blocks<kBlockWindow>,
     append_blocks,
     read_blocks,
     address_of_blocks,
     true,
     kBlockWindow},
};

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

  // Part of a step of every layer.
  void add_to_step(KvState& state, Truth& truth, int n) {
    for (size_t i = 0; i < kLayers; ++i) {
      const auto rows = random_rows(n);
      GetParam().append(state.layer(i), rows);
      auto& expected = truth.rows[i];
      expected.insert(expected.end(), rows.begin(), rows.end());
    }
  }

  static void finish_step(KvState& state) {
    mx::eval(state.pending_arrays());
    ASSERT_TRUE(state.commit().is_ok());
  }

  // One step of n positions.
  void append(KvState& state, Truth& truth, int n) {
    add_to_step(state, truth, n);
    finish_step(state);
  }

  // All rows, or those that the next position sees and some more.
  static void expect_holds(KvState& state, const Truth& truth) {
    for (size_t i = 0; i < kLayers; ++i) {
      const auto& all = truth.rows[i];
      ASSERT_EQ(state.offset(), static_cast<int64_t>(all.size()));
      const auto rows = GetParam().read(state.layer(i));
      EXPECT_GE(std::ssize(rows), needed(state.offset()));
      ASSERT_LE(rows.size(), all.size());
      EXPECT_EQ(rows, std::vector(all.end() - std::ssize(rows), all.end()));
    }
  }
  static int64_t needed(int64_t offset) {
    const int window = GetParam().window;
    return window == 0 ? offset : std::min<int64_t>(offset, window);
  }

  std::mt19937 random_{7};
};

INSTANTIATE_TEST_SUITE_P(
    Forms,
    KvStateTest,
    testing::ValuesIn(kForms),
    [](const auto& form) { return form.param.name; });

// Those of kForms that have one.
class WindowTest : public KvStateTest {};

INSTANTIATE_TEST_SUITE_P(
    Forms,
    WindowTest,
    testing::Values(kForms[2], kForms[3]),
    [](const auto& form) { return form.param.name; });

TEST_P(KvStateTest, StartsEmpty) {
  KvState state = make_state();
  EXPECT_EQ(state.offset(), 0);
  EXPECT_EQ(state.bytes(), 0u);
  EXPECT_TRUE(state.is_intact());
}

TEST_P(KvStateTest, OffsetMovesOnlyWithCommit) {
  KvState state = make_state();
  Truth truth;
  add_to_step(state, truth, 5);
  EXPECT_EQ(state.offset(), 0);
  finish_step(state);
  EXPECT_EQ(state.offset(), 5);
  EXPECT_TRUE(state.pending_arrays().empty());
}

TEST_P(KvStateTest, SeveralAppendsInOneStepFollowEachOther) {
  KvState state = make_state();
  Truth truth;
  for (const int n : {3, 1, 4}) {
    add_to_step(state, truth, n);
  }
  finish_step(state);
  expect_holds(state, truth);
}

TEST_P(KvStateTest, StepOfUnequalLayersIsAbandoned) {
  KvState state = make_state();
  for (size_t i = 0; i < kLayers; ++i) {
    GetParam().append(state.layer(i), random_rows(i == 1 ? 2 : 3));
  }
  mx::eval(state.pending_arrays());
  EXPECT_EQ(state.commit().code(), StatusCode::kInternal);
  EXPECT_EQ(state.is_intact(), GetParam().survives_failure);
  EXPECT_EQ(state.offset(), 0);
}

TEST_P(KvStateTest, AbandonedStepLeavesWhatWasCommittedOrNothing) {
  KvState state = make_state();
  Truth truth;
  append(state, truth, 3);
  for (const size_t i : {size_t{0}, size_t{2}}) { // it failed on the way
    GetParam().append(state.layer(i), random_rows(2));
  }
  state.abandon();
  EXPECT_EQ(state.is_intact(), GetParam().survives_failure);
  if (!state.is_intact()) {
    EXPECT_EQ(state.bytes(), 0u);
    return;
  }
  append(state, truth, 2);
  expect_holds(state, truth);
}

// Its buffer had to move: what was committed is in the new one.
TEST_P(KvStateTest, AbandonedStepThatMovedABufferLeavesWhatWasCommitted) {
  KvState state = make_state();
  Truth truth;
  for (int i = 0; i < 30; ++i) {
    append(state, truth, 40);
    if (!GetParam().survives_failure) {
      continue;
    }
    for (size_t layer = 0; layer < kLayers; ++layer) {
      GetParam().append(state.layer(layer), random_rows(700));
    }
    state.abandon();
    ASSERT_TRUE(state.is_intact());
    expect_holds(state, truth);
  }
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
  // x 1.5 from 64: 64 97 147 222 334 502 754; a window's buffer has room for a
  // third of what it holds.
  EXPECT_LE(
      capacities.size(),
      GetParam().window == 0 ? 8u : 8u + 600 / (kArrayWindow / 2));
  expect_holds(state, truth);
}

TEST_P(KvStateTest, ReserveMakesAppendsStayInPlace) {
  KvState state = make_state();
  state.reserve(200);
  Truth truth;
  append(state, truth, 50);
  const auto address_after_step = [&] {
    const void* address = nullptr;
    for (size_t i = 0; i < kLayers; ++i) {
      address = GetParam().address(state.layer(i));
      truth.rows[i].push_back(kAnyRow);
    }
    finish_step(state);
    return address;
  };
  const int64_t capacity = state.layer(0).capacity();
  EXPECT_GE(capacity, 200);
  const void* address = address_after_step();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(address_after_step(), address);
  }
  EXPECT_EQ(state.layer(0).capacity(), capacity);
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

// Acceptance 50.
TEST_P(KvStateTest, window_trim_rule) {
  KvState state = make_state();
  Truth truth;
  for (int i = 0; i < 80; ++i) {
    append(state, truth, 1 + i % 50);
  }
  const int64_t begin = state.layer(0).begin();
  EXPECT_EQ(begin > 0, GetParam().window > 0);
  int64_t least = state.offset();
  for (int64_t p = state.offset(); p >= 0; --p) {
    EXPECT_EQ(
        state.can_trim_to(p), begin == 0 || p - GetParam().window >= begin);
    least = state.can_trim_to(p) ? p : least;
  }
  EXPECT_FALSE(begin > 0 && state.trim(least - 1).is_ok());
  const int64_t lower = least;
  ASSERT_TRUE(state.trim(lower).is_ok());
  for (auto& rows : truth.rows) {
    rows.resize(static_cast<size_t>(lower));
  }
  append(state, truth, 30);
  expect_holds(state, truth);
}

TEST_P(WindowTest, TakesMemoryForAFewWindowsHoweverLongTheText) {
  KvState state = make_state();
  Truth truth;
  append(state, truth, 3 * GetParam().window); // a long piece of a prompt
  for (int i = 0; i < 100; ++i) {
    append(state, truth, 50);
  }
  const int64_t rows = state.layer(0).capacity() - state.layer(0).begin();
  EXPECT_LE(rows, 2 * GetParam().window + 50 + 2 * kBlockPositions);
  expect_holds(state, truth);
}

TEST_P(KvStateTest, RestoredPastTheWindowGoesOnAsTheOtherDoes) {
  KvState state = make_state();
  Truth truth;
  for (int i = 0; i < 30; ++i) {
    append(state, truth, 40);
  }
  const KvSnapshot snapshot = state.snapshot(state.offset());
  const Truth then = truth;
  for (int i = 0; i < 30; ++i) {
    append(state, truth, 40); // moves to fresh buffers
  }
  KvState restored = snapshot.restore();
  EXPECT_EQ(snapshot.length(), 1200);
  Truth other = then;
  expect_holds(restored, other);
  for (int i = 0; i < 20; ++i) {
    append(restored, other, 33);
  }
  expect_holds(restored, other);
  expect_holds(state, truth);
}

// Random appends, trims, snapshots and restores on several states at once;
// each always holds what its own history says.
TEST_P(KvStateTest, RandomHistoriesHoldWhatTheyShould) {
  const int64_t kLongestStep = GetParam().window == 0 ? 40 : 250;
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
        append(state, truth, static_cast<int>(1 + pick(kLongestStep)));
        break;
      case 2: {
        const int64_t position = pick(length);
        const bool can_trim = state.can_trim_to(position);
        ASSERT_EQ(state.trim(position).is_ok(), can_trim);
        if (!can_trim) {
          break;
        }
        for (auto& rows : truth.rows) {
          rows.resize(static_cast<size_t>(position));
        }
        break;
      }
      case 3: {
        const int64_t position = pick(length);
        if (!state.can_trim_to(position)) {
          break;
        }
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
