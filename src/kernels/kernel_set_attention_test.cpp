// Attention of every instruction set against the portable one, bit for bit; the
// portable one against plain f64.
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/kernel_set.h"
#include "kernels/testing/bounds.h"
#include "kernels/testing/kernel_set_fixture.h"
#include "kernels/testing/random_weights.h"
#include "kernels/thread_pool.h"

namespace ingle {
namespace {

class KernelSetAttentionTest : public KernelSetFixture {};

struct AttentionCase {
  int head_dim = 64;
  int rows = 1;
  int positions = 0;
  int window = 0;
  float soft_cap = 0;
  int kv_bits = 16;
  int kv_group_size = 64;
};

// One block of one head, with its queries; row r stands at the end but r.
struct Block {
  explicit Block(std::mt19937& random, const AttentionCase& c)
      : shape{c.head_dim, c.kv_bits, c.kv_group_size},
        keys(random_floats(random, c.positions * c.head_dim)),
        values(random_floats(random, c.positions * c.head_dim)),
        queries(random_floats(random, c.rows * c.head_dim)),
        block(shape.bytes()) {}

  KvBlockShape shape;
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> queries;
  std::vector<std::byte> block;
};

struct Attended {
  std::vector<float> values; // [rows, padded_dim]
  std::vector<float> max;
  std::vector<float> weight;
  bool operator==(const Attended&) const = default;
};

Share seen_by(const AttentionCase& c, int row) {
  const int end = c.positions - row;
  return {c.window == 0 ? 0 : std::max(0, end - c.window), std::max(0, end)};
}

std::vector<std::byte> widened(const KernelSet& set, const Block& held) {
  if (!held.shape.is_quantized()) {
    return held.block;
  }
  std::vector<std::byte> wide(held.shape.widened().bytes());
  set.widen(held.block.data(), held.shape, 0, kBlockTiles, wide.data());
  return wide;
}

Attended attend(const KernelSet& set, Block& held, const AttentionCase& c) {
  const int dim = held.shape.padded_dim();
  std::vector<std::vector<int32_t>> packed;
  std::vector<const int32_t*> queries;
  std::vector<float> scales;
  std::vector<int32_t> begins;
  std::vector<int32_t> ends;
  for (int p = 0; p < c.positions; ++p) {
    set.put_kv(
        held.keys.data() + p * c.head_dim,
        held.values.data() + p * c.head_dim,
        held.shape,
        p,
        held.block.data());
  }
  const std::vector<std::byte> block = widened(set, held);
  const KvBlockShape shape = held.shape.widened();
  const float scale = 1.44269504f / std::sqrt(static_cast<float>(c.head_dim));
  for (int r = 0; r < c.rows; ++r) {
    packed.emplace_back(static_cast<size_t>(dim / 2));
    scales.push_back(
        scale *
        set.pack_query(
            held.queries.data() + r * c.head_dim, shape, packed.back().data()));
    begins.push_back(seen_by(c, r).begin);
    ends.push_back(seen_by(c, r).end);
  }
  for (const auto& query : packed) {
    queries.push_back(query.data());
  }
  Attended out;
  out.values.resize(static_cast<size_t>(c.rows * dim));
  std::vector<PartialAttention> results(static_cast<size_t>(c.rows));
  for (size_t r = 0; r < results.size(); ++r) {
    results[r].values = out.values.data() + r * static_cast<size_t>(dim);
  }
  for (int r = 0; r < c.rows; r += set.query_rows) {
    set.attend_block(
        {.shape = shape,
         .block = block.data(),
         .next = block.data(),
         .rows = std::min(set.query_rows, c.rows - r),
         .queries = queries.data() + r,
         .scales = scales.data() + r,
         .begins = begins.data() + r,
         .ends = ends.data() + r,
         .soft_cap = c.soft_cap * 1.44269504f},
        results.data() + r);
  }
  for (const PartialAttention& result : results) {
    out.max.push_back(result.max);
    out.weight.push_back(result.weight);
  }
  return out;
}

// The row's attention in f64: [head_dim].
std::vector<double> exact(const Block& held, const AttentionCase& c, int row) {
  const auto dim = static_cast<size_t>(c.head_dim);
  std::vector<double> out(dim);
  double total = 0;
  const Share seen = seen_by(c, row);
  for (int p = seen.begin; p < seen.end; ++p) {
    double score = 0;
    for (size_t i = 0; i < dim; ++i) {
      score += static_cast<double>(
                   held.queries[static_cast<size_t>(row) * dim + i]) *
          held.keys[static_cast<size_t>(p) * dim + i];
    }
    score /= std::sqrt(static_cast<double>(c.head_dim));
    if (c.soft_cap > 0) {
      score = c.soft_cap * std::tanh(score / c.soft_cap);
    }
    const double weight = std::exp(score);
    total += weight;
    for (size_t i = 0; i < dim; ++i) {
      out[i] += weight * held.values[static_cast<size_t>(p) * dim + i];
    }
  }
  for (double& value : out) {
    value /= total;
  }
  return out;
}

// Of the steps between the integers of a head's groups; 0 with 16 bits.
double largest_step(const float* x, const AttentionCase& c) {
  double largest = 0;
  for (int i = 0; c.kv_bits < 16 && i < c.head_dim; i += c.kv_group_size) {
    const int end = std::min(c.head_dim, i + c.kv_group_size);
    auto [low, high] = std::minmax_element(x + i, x + end);
    // What fills the head's last lanes is 0.
    const float least = end % 16 == 0 ? *low : std::min(0.0f, *low);
    const float most = end % 16 == 0 ? *high : std::max(0.0f, *high);
    largest = std::max(
        largest, static_cast<double>(most - least) / ((1 << c.kv_bits) - 1));
  }
  return largest;
}

// What a block of 16 bits holds at a position.
double element_of(
    const std::vector<std::byte>& block,
    const KvBlockShape& shape,
    bool is_key,
    int position,
    int dim) {
  const int key_pair =
      position / kTilePositions * shape.padded_dim() / 2 + dim / 2;
  const int at = is_key
      ? (key_pair * kTilePositions + position % kTilePositions) * 2 + dim % 2
      : (position / 2 * shape.padded_dim() + dim) * 2 + position % 2;
  int16_t integer = 0;
  std::memcpy(
      &integer,
      block.data() + (is_key ? 0 : shape.half_bytes()) +
          static_cast<size_t>(at) * sizeof integer,
      sizeof integer);
  const int scale_at = is_key ? position : kBlockPositions + position;
  float scale = 0;
  std::memcpy(
      &scale,
      block.data() + shape.scales_offset() +
          static_cast<size_t>(scale_at) * sizeof scale,
      sizeof scale);
  return static_cast<double>(integer) * scale;
}

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> cases;
  for (const int head_dim : {2, 18, 16, 40, 64, 80, 128, 256}) {
    cases.push_back({head_dim, 3, 256, 0, 0});
  }
  for (const int positions : {1, 15, 64, 65, 200}) {
    for (const int rows : {1, 2, 3, 6, 8}) {
      cases.push_back({64, rows, positions, 0, 0});
      cases.push_back({64, rows, positions, 0, 2});
      cases.push_back({64, rows, positions, 20, 0});
    }
  }
  for (const int bits : {8, 4}) {
    for (const int group_size : {32, 64, 128}) {
      for (const int head_dim : {2, 18, 16, 40, 64, 80, 256}) {
        cases.push_back({head_dim, 3, 200, 0, 0, bits, group_size});
      }
    }
  }
  return cases;
}

// An element of 8 or 4 bits is off by half a step at most, and by what f16
// takes from its gain and offset.
TEST_P(KernelSetAttentionTest, QuantizedKeysAndValuesAreNearWhatWasPut) {
  for (const AttentionCase& c : attention_cases()) {
    Block held(random, c);
    // A group of one value, of zeros, and of one that is far from the rest.
    std::fill_n(held.keys.begin(), c.head_dim, 3.5f);
    std::fill_n(held.values.begin(), c.head_dim, 0.0f);
    held.values.back() = -700;
    attend(set(), held, c);
    const auto wide = widened(set(), held);
    const KvBlockShape shape = held.shape.widened();
    for (const bool is_key : {true, false}) {
      const auto& put = is_key ? held.keys : held.values;
      for (int p = 0; p < c.positions; ++p) {
        const float* x = put.data() + p * c.head_dim;
        const double step = largest_step(x, c);
        const double size =
            std::abs(*std::max_element(x, x + c.head_dim, [](float a, float b) {
              return std::abs(a) < std::abs(b);
            }));
        for (int i = 0; i < c.head_dim; ++i) {
          ASSERT_NEAR(
              element_of(wide, shape, is_key, p, i),
              x[i],
              0.56 * step + 6e-4 * size)
              << c.kv_bits << " bits, " << p << ", " << i;
        }
      }
    }
  }
}

TEST_P(KernelSetAttentionTest, AttentionIsThePortableOnesAndNearTheExact) {
  for (const AttentionCase& c : attention_cases()) {
    Block held(random, c);
    const Attended out = attend(set(), held, c);
    Block same = held;
    std::fill(same.block.begin(), same.block.end(), std::byte{0});
    const Attended expected = attend(portable(), same, c);
    ASSERT_EQ(held.block, same.block);
    ASSERT_TRUE(out == expected) << c.rows << " rows, " << c.positions;
    const int dim = held.shape.padded_dim();
    for (int r = 0; r < c.rows; ++r) {
      const auto row = static_cast<size_t>(r);
      if (seen_by(c, r).end == 0) {
        EXPECT_EQ(out.weight[row], 0);
        continue;
      }
      std::vector<float> values(
          out.values.begin() + r * dim, out.values.begin() + (r + 1) * dim);
      std::vector<float> finished(static_cast<size_t>(c.head_dim));
      const PartialAttention total{
          out.max[row], out.weight[row], values.data()};
      set().finish(total, c.head_dim, finished.data());
      const auto truth = exact(held, c, r);
      for (size_t i = 0; i < truth.size(); ++i) {
        ASSERT_NEAR(finished[i], truth[i], attention_bound(c.kv_bits))
            << c.head_dim << " dims, " << c.positions << " positions";
      }
    }
  }
}

// What is left behind the positions, or behind those that a row sees, may be of
// any size.
TEST_P(KernelSetAttentionTest, ScalesThatNobodySeesDoNotMatter) {
  for (const AttentionCase& c : attention_cases()) {
    Block held(random, c);
    const Attended expected = attend(set(), held, c);
    for (int p = c.positions; p < kBlockPositions; ++p) {
      for (const int half : {0, kBlockPositions}) {
        const float scale = p % 2 == 0 ? 1e38f : 1e-38f;
        std::memcpy(
            held.block.data() + held.shape.scales_offset() +
                sizeof scale * static_cast<size_t>(half + p),
            &scale,
            sizeof scale);
      }
    }
    ASSERT_TRUE(attend(set(), held, c) == expected) << c.positions;
  }
}

TEST_P(KernelSetAttentionTest, PartsMergeToTheWhole) {
  constexpr int kDim = 32;
  auto a = random_floats(random, kDim);
  auto b = random_floats(random, kDim);
  const PartialAttention first{1.5f, 2, a.data()};
  const PartialAttention second{3, 0.5f, b.data()};
  std::vector<float> sum(kDim, 0.0f);
  PartialAttention total{-1e30f, 0, sum.data()};
  set().merge(total, first, kDim);
  EXPECT_EQ(sum, a);
  EXPECT_EQ(total.weight, 2);
  set().merge(total, second, kDim);
  const double shrink = std::exp2(-1.5);
  EXPECT_EQ(total.max, 3);
  EXPECT_NEAR(total.weight, 2 * shrink + 0.5, 1e-6);
  for (size_t i = 0; i < kDim; ++i) {
    EXPECT_NEAR(sum[i], a[i] * shrink + b[i], 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    KernelSetAttentionTest,
    testing::ValuesIn(supported_isas()),
    [](const auto& each) { return std::string(to_string(each.param)); });

} // namespace
} // namespace ingle
