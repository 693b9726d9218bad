// Every instruction set against the portable one, bit for bit; the portable
// one against plain f64.
#include "kernels/kernel_set.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/testing/bounds.h"
#include "kernels/testing/random_weights.h"
#include "kernels/thread_pool.h"

namespace ingle {
namespace {

using testing::ElementsAreArray;

class KernelSetTest : public testing::TestWithParam<Isa> {
 protected:
  const KernelSet& set() const {
    return kernel_set(GetParam());
  }
  static const KernelSet& portable() {
    return kernel_set(Isa::kPortable);
  }

  std::mt19937 random{7};
  Arena arena;
};

// A tile of its own memory.
struct OwnTile {
  Tile tile;
  std::vector<float> floats;
  std::vector<int32_t> quads;
  std::vector<float> scales;
  std::vector<float> sums;
};

OwnTile pack(
    const KernelSet& set,
    Inputs inputs,
    const std::vector<float>& x,
    int first,
    int tokens,
    int columns) {
  OwnTile own;
  const auto values = static_cast<size_t>(tokens * columns);
  own.floats.resize(values);
  own.quads.resize(values / 2);
  own.scales.resize(values / kChunkColumns + 1);
  own.sums.resize(values / kChunkColumns + 1);
  own.tile = {
      inputs,
      tokens,
      columns,
      own.floats.data(),
      own.quads.data(),
      own.scales.data(),
      own.sums.data()};
  std::vector<const float*> rows;
  for (int t = first; t < first + tokens; ++t) {
    rows.push_back(x.data() + static_cast<ptrdiff_t>(t) * columns);
  }
  set.pack_tile(rows.data(), own.tile);
  return own;
}

// product.out for all tokens, in tiles of what the set holds.
std::vector<float> multiply(
    const KernelSet& set,
    Inputs inputs,
    Product product,
    const std::vector<float>& x,
    int tokens) {
  const int columns = product.matrix->columns;
  const int rows = product.matrix->rows;
  std::vector<float> out(static_cast<size_t>(tokens * rows), -1);
  product.stride = rows;
  const float* addend = product.addend;
  for (int t = 0; t < tokens; t += set.tile_tokens) {
    const OwnTile own =
        pack(set, inputs, x, t, std::min(set.tile_tokens, tokens - t), columns);
    product.out = out.data() + static_cast<ptrdiff_t>(t) * rows;
    product.addend =
        addend == nullptr ? nullptr : addend + static_cast<ptrdiff_t>(t) * rows;
    // In two parts, as two threads would.
    const int middle = product.matrix->panels() / 2;
    set.multiply(product, 0, middle, own.tile);
    set.multiply(product, middle, product.matrix->panels(), own.tile);
  }
  return out;
}

TEST_P(KernelSetTest, RmsNormIsThePortableOnes) {
  for (const int columns : {1, 15, 16, 17, 576}) {
    const auto x = random_floats(random, columns);
    const auto weight = random_floats(random, columns);
    std::vector<float> out(x.size());
    std::vector<float> expected(x.size());
    set().rms_norm(x.data(), weight.data(), 1e-5f, columns, out.data());
    portable().rms_norm(
        x.data(), weight.data(), 1e-5f, columns, expected.data());
    EXPECT_EQ(out, expected);
    double squares = 0;
    for (const float value : x) {
      squares += static_cast<double>(value) * value;
    }
    const double scale = 1 / std::sqrt(squares / columns + 1e-5);
    for (size_t i = 0; i < x.size(); ++i) {
      const double y = x[i] * scale * weight[i];
      EXPECT_NEAR(out[i], y, 1e-6 * std::abs(y) + 1e-12);
    }
  }
}

TEST_P(KernelSetTest, LayerNormIsThePortableOnes) {
  for (const int columns : {1, 15, 16, 17, 576}) {
    auto x = random_floats(random, columns);
    for (float& value : x) {
      value += 3; // what is to be taken away
    }
    const auto weight = random_floats(random, columns);
    const auto bias = random_floats(random, columns);
    std::vector<float> out(x.size());
    std::vector<float> expected(x.size());
    const auto norm = [&](const KernelSet& with, std::vector<float>& to) {
      with.layer_norm(
          x.data(), weight.data(), bias.data(), 1e-5f, columns, to.data());
    };
    norm(set(), out);
    norm(portable(), expected);
    EXPECT_EQ(out, expected);
    double mean = 0;
    for (const float value : x) {
      mean += static_cast<double>(value) / columns;
    }
    double variance = 0;
    for (const float value : x) {
      variance += (value - mean) * (value - mean) / columns;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const double y = (x[i] - mean) / std::sqrt(variance + 1e-5);
      EXPECT_NEAR(out[i], y * weight[i] + bias[i], 1e-5);
    }
    auto in_place = x;
    set().layer_norm(
        in_place.data(),
        weight.data(),
        bias.data(),
        1e-5f,
        columns,
        in_place.data());
    EXPECT_EQ(in_place, out);
  }
}

double exact_activation(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5 * x *
          (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGelu:
      break;
  }
  return 0.5 * x * std::erfc(-x / std::sqrt(2));
}

constexpr Activation kActivations[] = {
    Activation::kSilu,
    Activation::kGeluTanh,
    Activation::kGelu};

TEST_P(KernelSetTest, ActivationsAreThePortableOnesAndNearTheExact) {
  std::vector<float> x = {0, -0.0f, 1e-30f, 1e30f, -1e30f, 88, -88};
  for (int i = -1200; i <= 1200; ++i) {
    x.push_back(static_cast<float>(i) / 100);
  }
  const auto n = static_cast<int>(x.size());
  const std::vector<float> twos(x.size(), 2.0f);
  for (const Activation activation : kActivations) {
    auto out = x;
    auto expected = x;
    auto doubled = x;
    set().activate_gate(out.data(), nullptr, activation, n);
    portable().activate_gate(expected.data(), nullptr, activation, n);
    set().activate_gate(doubled.data(), twos.data(), activation, n);
    EXPECT_EQ(out, expected);
    for (size_t i = 0; i < x.size(); ++i) {
      const double y = exact_activation(activation, x[i]);
      EXPECT_NEAR(out[i], y, 3e-7 * std::abs(x[i]) + 1e-7) << x[i];
      EXPECT_EQ(doubled[i], 2 * out[i]);
    }
  }
}

struct ProductCase {
  int bits = 0;
  int group_size = 0;
  FloatType type = FloatType::kF32;
  Inputs inputs = Inputs::kFloats;
};

std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (const FloatType type :
       {FloatType::kF32, FloatType::kF16, FloatType::kBF16}) {
    cases.push_back({0, 0, type, Inputs::kFloats});
    for (const Inputs inputs : {Inputs::kOnePlane, Inputs::kTwoPlanes}) {
      for (const int bits : {2, 3, 4, 5, 6, 8}) {
        for (const int group : {32, 64, 128}) {
          cases.push_back({bits, group, type, inputs});
        }
      }
    }
  }
  return cases;
}

TEST_P(KernelSetTest, ProductsAreThePortableOnesAndNearTheExact) {
  constexpr int kRows = 50; // a tail, and an odd number of panels
  constexpr int kColumns = 256;
  constexpr int kTokens = 13;
  for (const ProductCase& c : product_cases()) {
    const RandomMatrix m = random_matrix(
        random, arena, kRows, kColumns, c.bits, c.group_size, c.type);
    const auto x = random_floats(random, kTokens * kColumns);
    const Product product{.matrix = &m.packed};
    const auto out = multiply(set(), c.inputs, product, x, kTokens);
    const auto expected = multiply(portable(), c.inputs, product, x, kTokens);
    ASSERT_EQ(out, expected) << c.bits << " bits by " << c.group_size;
    for (int t = 0; t < kTokens; ++t) {
      for (int n = 0; n < kRows; ++n) {
        double sum = 0;
        double magnitude = 0;
        for (int k = 0; k < kColumns; ++k) {
          const double term =
              static_cast<double>(x[static_cast<size_t>(t * kColumns + k)]) *
              m.values[static_cast<size_t>(n * kColumns + k)];
          sum += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(
            out[static_cast<size_t>(t * kRows + n)],
            sum,
            product_bound(c.inputs) * magnitude)
            << c.bits << " bits by " << c.group_size;
      }
    }
  }
}

// Dense matrices have any number of columns.
TEST_P(KernelSetTest, DenseProductsOfOddWidthsAreThePortableOnes) {
  constexpr int kTokens = 7;
  for (const int columns : {1, 18, 50, 97}) {
    const RandomMatrix m =
        random_matrix(random, arena, 33, columns, 0, 0, FloatType::kBF16);
    const auto x = random_floats(random, kTokens * columns);
    const Product product{.matrix = &m.packed};
    EXPECT_EQ(
        multiply(set(), Inputs::kFloats, product, x, kTokens),
        multiply(portable(), Inputs::kFloats, product, x, kTokens));
  }
}

TEST_P(KernelSetTest, TokensGetTheSameBitsInAnyTile) {
  constexpr int kRows = 40;
  constexpr int kColumns = 96;
  for (const Inputs inputs :
       {Inputs::kFloats, Inputs::kOnePlane, Inputs::kTwoPlanes}) {
    const RandomMatrix m = random_matrix(
        random,
        arena,
        kRows,
        kColumns,
        inputs == Inputs::kFloats ? 0 : 4,
        32,
        FloatType::kF16);
    const auto x = random_floats(random, 11 * kColumns);
    const Product product{.matrix = &m.packed};
    const auto all = multiply(set(), inputs, product, x, 11);
    for (int t = 0; t < 11; ++t) {
      const std::vector<float> one(
          x.begin() + t * kColumns, x.begin() + (t + 1) * kColumns);
      const auto alone = multiply(set(), inputs, product, one, 1);
      EXPECT_THAT(
          alone,
          ElementsAreArray(
              all.begin() + t * kRows, all.begin() + (t + 1) * kRows));
    }
  }
}

TEST_P(KernelSetTest, BiasAddendAndGateAreThePortableOnes) {
  constexpr int kRows = 24;
  constexpr int kColumns = 64;
  constexpr int kTokens = 5;
  const RandomMatrix m =
      random_matrix(random, arena, kRows, kColumns, 4, 64, FloatType::kF16);
  const RandomMatrix up =
      random_matrix(random, arena, kRows, kColumns, 4, 64, FloatType::kF16);
  const auto x = random_floats(random, kTokens * kColumns);
  const auto bias = random_floats(random, kRows);
  const auto up_bias = random_floats(random, kRows);
  const auto addend = random_floats(random, kTokens * kRows);
  const auto inputs = Inputs::kTwoPlanes;

  const auto y = multiply(
      set(), inputs, {.matrix = &m.packed, .bias = bias.data()}, x, kTokens);
  const auto other = multiply(
      set(),
      inputs,
      {.matrix = &up.packed, .bias = up_bias.data()},
      x,
      kTokens);
  const Product added{
      .matrix = &m.packed, .bias = bias.data(), .addend = addend.data()};
  const auto sum = multiply(set(), inputs, added, x, kTokens);
  EXPECT_EQ(sum, multiply(portable(), inputs, added, x, kTokens));
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(sum[i], addend[i] + y[i]);
  }
  for (const Activation activation : kActivations) {
    const Product gated{
        .matrix = &m.packed,
        .bias = bias.data(),
        .up = &up.packed,
        .up_bias = up_bias.data(),
        .activation = activation};
    const auto out = multiply(set(), inputs, gated, x, kTokens);
    EXPECT_EQ(out, multiply(portable(), inputs, gated, x, kTokens));
    for (size_t i = 0; i < y.size(); ++i) {
      const double g = y[i];
      EXPECT_NEAR(
          out[i],
          exact_activation(activation, g) * other[i],
          2e-6 * (std::abs(g * other[i])) + 1e-6);
    }
  }
}

TEST_P(KernelSetTest, InputsOfZeroAndOfOneLargeElementArePacked) {
  std::vector<float> x(64, 0.0f);
  x[40] = 1e30f;
  for (const Inputs inputs : {Inputs::kOnePlane, Inputs::kTwoPlanes}) {
    const OwnTile own = pack(set(), inputs, x, 0, 1, 64);
    EXPECT_EQ(own.scales[0], 0);
    EXPECT_EQ(own.sums[0], 0);
    EXPECT_NEAR(own.sums[1], 1e30f, 1e24f);
  }
}

TEST_P(KernelSetTest, RotationIsThePortableOnes) {
  for (const bool traditional : {false, true}) {
    for (const int dims : {2, 16, 64, 80}) {
      const auto head = random_floats(random, dims);
      std::vector<float> cosines;
      std::vector<float> sines;
      for (const float angle : random_floats(random, dims / 2)) {
        cosines.push_back(std::cos(angle));
        sines.push_back(std::sin(angle));
      }
      auto out = head;
      auto expected = head;
      set().rotate(out.data(), cosines.data(), sines.data(), dims, traditional);
      portable().rotate(
          expected.data(), cosines.data(), sines.data(), dims, traditional);
      EXPECT_EQ(out, expected);
      for (int i = 0; i < dims / 2; ++i) {
        const auto a = static_cast<size_t>(traditional ? 2 * i : i);
        const auto b =
            static_cast<size_t>(traditional ? 2 * i + 1 : i + dims / 2);
        const auto at = static_cast<size_t>(i);
        EXPECT_NEAR(out[a], head[a] * cosines[at] - head[b] * sines[at], 1e-5);
        EXPECT_NEAR(out[b], head[a] * sines[at] + head[b] * cosines[at], 1e-5);
      }
    }
  }
}

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
TEST_P(KernelSetTest, QuantizedKeysAndValuesAreNearWhatWasPut) {
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

TEST_P(KernelSetTest, AttentionIsThePortableOnesAndNearTheExact) {
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
TEST_P(KernelSetTest, ScalesThatNobodySeesDoNotMatter) {
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

TEST_P(KernelSetTest, PartsMergeToTheWhole) {
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

TEST_P(KernelSetTest, LogitsAreSummedAndSearchedAsThePortableOnesAre) {
  for (const int n : {0, 1, 15, 16, 1000, 3003}) {
    auto x = random_floats(random, n);
    if (n > 20) {
      x[3] = x[20] = -std::numeric_limits<float>::infinity();
    }
    bool is_sound = true;
    const float peak = set().largest(x.data(), n, is_sound);
    EXPECT_TRUE(is_sound);
    EXPECT_EQ(peak, portable().largest(x.data(), n, is_sound));
    const float floor = -0.25f;
    const double sum = set().exp_sum(x.data(), n, peak, 1.5f, floor);
    EXPECT_EQ(sum, portable().exp_sum(x.data(), n, peak, 1.5f, floor));
    const float floors[kFloors] = {
        -std::numeric_limits<float>::max(), -0.5f, 1};
    double sums[kFloors];
    double portable_sums[kFloors];
    set().exp_sums(x.data(), n, peak, floors, sums);
    portable().exp_sums(x.data(), n, peak, floors, portable_sums);
    for (int i = 0; i < kFloors; ++i) {
      EXPECT_EQ(sums[i], portable_sums[i]);
      EXPECT_EQ(sums[i], set().exp_sum(x.data(), n, peak, 1, floors[i]));
    }
    double exact = 0;
    std::vector<int32_t> expected;
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      if (x[at] >= floor) {
        exact += std::exp((static_cast<double>(x[at]) - peak) * 1.5);
      }
      if (x[at] >= 0.5f && x[at] < 1.5f) {
        expected.push_back(i);
      }
    }
    EXPECT_NEAR(sum, exact, 2e-6 * exact);
    std::vector<int32_t> found(x.size() + 15);
    found.resize(static_cast<size_t>(
        set().find_between(x.data(), n, 0.5f, 1.5f, found.data())));
    EXPECT_EQ(found, expected);
  }
}

TEST_P(KernelSetTest, LogitsThatAreNotNumbersAreToldAnywhere) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::infinity()}) {
    for (int at = 0; at < 35; ++at) {
      std::vector<float> x(35, 1.0f);
      x[static_cast<size_t>(at)] = bad;
      bool is_sound = true;
      set().largest(x.data(), 35, is_sound);
      EXPECT_FALSE(is_sound) << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    KernelSetTest,
    testing::ValuesIn(supported_isas()),
    [](const auto& each) { return std::string(to_string(each.param)); });

} // namespace
} // namespace ingle
