// Every instruction set against the portable one, bit for bit; the portable
// one against plain f64.
#include "kernels/kernel_set.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/testing/bounds.h"
#include "kernels/testing/kernel_set_fixture.h"
#include "kernels/testing/random_weights.h"
#include "kernels/thread_pool.h"

namespace ingle {
namespace {

using testing::ElementsAreArray;

class KernelSetTest : public KernelSetFixture {};

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
    case Activation::kClampedSwiglu:
      x = std::min(x, 7.0);
      return x / (1 + std::exp(-1.702 * x));
    case Activation::kGelu:
      break;
  }
  return 0.5 * x * std::erfc(-x / std::sqrt(2));
}

constexpr Activation kActivations[] = {
    Activation::kSilu,
    Activation::kGeluTanh,
    Activation::kGelu,
    Activation::kClampedSwiglu};

double exact_gated(Activation activation, double gate, double up) {
  const double passed = activation == Activation::kClampedSwiglu
      ? std::clamp(up, -7.0, 7.0) + 1
      : up;
  return exact_activation(activation, gate) * passed;
}

TEST_P(KernelSetTest, ActivationsAreThePortableOnesAndNearTheExact) {
  std::vector<float> x = {0, -0.0f, 1e-30f, 1e30f, -1e30f, 88, -88};
  for (int i = -1200; i <= 1200; ++i) {
    x.push_back(static_cast<float>(i) / 100);
  }
  const auto n = static_cast<int>(x.size());
  for (const Activation activation : kActivations) {
    auto out = x;
    auto expected = x;
    set().activate_gate(out.data(), nullptr, activation, n);
    portable().activate_gate(expected.data(), nullptr, activation, n);
    EXPECT_EQ(out, expected);
    for (size_t i = 0; i < x.size(); ++i) {
      const double y = exact_activation(activation, x[i]);
      EXPECT_NEAR(out[i], y, 3e-7 * std::abs(x[i]) + 1e-7) << x[i];
    }
    for (const float value : {2.0f, -0.5f, 7.5f, -9.0f}) {
      auto gated = x;
      const std::vector<float> up(x.size(), value);
      set().activate_gate(gated.data(), up.data(), activation, n);
      const double factor =
          exact_gated(activation, 1, value) / exact_activation(activation, 1);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(gated[i], static_cast<float>(factor) * out[i]) << value;
      }
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
  for (const Inputs inputs : {Inputs::kOnePlane, Inputs::kTwoPlanes}) {
    cases.push_back({4, 32, FloatType::kE8M0, inputs});
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
          exact_gated(activation, g, other[i]),
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
