// What adapters add to products: against plain f64, and the same bits whatever
// is beside it.
#include "kernels/low_rank.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/products.h"
#include "kernels/testing/kernel_set_fixture.h"
#include "kernels/testing/random_weights.h"

namespace ingle {
namespace {

using testing::ElementsAreArray;

class LowRankTest : public KernelSetFixture {};

// The thin matrices of an adapter.
struct Thin {
  Thin(std::mt19937& random, int columns, int rows, int rank, float scale)
      : a(random_floats(random, rank * columns)),
        b(random_floats(random, rank * rows)),
        view{a.data(), b.data(), rank, scale} {}

  std::vector<float> a;
  std::vector<float> b;
  LowRank view;
};

TEST_P(LowRankTest, SumsAreThePortableOnes) {
  for (const int columns : {1, 16, 33, 576}) {
    for (const int rank : {1, 3, 4, 9}) {
      const int tokens = 5;
      const auto x = random_floats(random, tokens * columns);
      const auto a = random_floats(random, rank * columns);
      const auto sums_of = [&](const KernelSet& with) {
        std::vector<float> sums(static_cast<size_t>(tokens * rank));
        std::vector<const float*> inputs;
        std::vector<float*> outputs;
        for (int t = 0; t < tokens; ++t) {
          inputs.push_back(x.data() + ptrdiff_t{t} * columns);
          outputs.push_back(sums.data() + ptrdiff_t{t} * rank);
        }
        with.low_rank_in(
            inputs.data(), tokens, a.data(), rank, columns, outputs.data());
        return sums;
      };
      const auto sums = sums_of(set());
      EXPECT_EQ(sums, sums_of(portable()));
      for (int t = 0; t < tokens; ++t) {
        for (int r = 0; r < rank; ++r) {
          double expected = 0;
          double size = 0;
          for (int k = 0; k < columns; ++k) {
            const double product =
                static_cast<double>(x[static_cast<size_t>(t * columns + k)]) *
                a[static_cast<size_t>(r * columns + k)];
            expected += product;
            size += std::abs(product);
          }
          EXPECT_NEAR(
              sums[static_cast<size_t>(t * rank + r)], expected, 1e-6 * size);
        }
      }
    }
  }
}

TEST_P(LowRankTest, OutputsAreThePortableOnes) {
  const int rank = 5;
  const int tokens = 3;
  for (const int rows : {1, 16, 63, 64, 65, 200}) {
    const auto values = random_floats(random, tokens * rank);
    const auto b = random_floats(random, rank * rows);
    const auto before = random_floats(random, tokens * rows);
    const auto outputs_of = [&](const KernelSet& with) {
      auto out = before;
      with.low_rank_out(
          {tokens, values.data(), rank, b.data(), rows, rank, 0.5f, rows},
          rows,
          out.data());
      return out;
    };
    const auto out = outputs_of(set());
    EXPECT_EQ(out, outputs_of(portable()));
    for (int t = 0; t < tokens; ++t) {
      for (int i = 0; i < rows; ++i) {
        double expected = before[static_cast<size_t>(t * rows + i)];
        for (int r = 0; r < rank; ++r) {
          expected += 0.5 * values[static_cast<size_t>(t * rank + r)] *
              b[static_cast<size_t>(r * rows + i)];
        }
        EXPECT_NEAR(out[static_cast<size_t>(t * rows + i)], expected, 1e-5);
      }
    }
  }
}

constexpr int kColumns = 96;
constexpr int kRows = 200;

// x times the matrix, with what adapters add: [tokens, kRows].
std::vector<float> multiply(
    const KernelSet& set,
    int threads,
    const PackedMatrix& matrix,
    std::span<const LowRankRun> adapters,
    std::span<const float> x) {
  const auto tokens = static_cast<int>(x.size()) / kColumns;
  ThreadPool pool(threads);
  KernelContext context{set, pool, Inputs::kTwoPlanes};
  std::vector<float> out(static_cast<size_t>(tokens * kRows));
  ProductInputs inputs(context, tokens, {{&matrix, nullptr, adapters}});
  pool.run([&](int thread) {
    inputs.pack(thread, [&](int t, float*) {
      return x.data() + ptrdiff_t{t} * kColumns;
    });
    inputs.multiply(
        thread, {.matrix = &matrix, .out = out.data(), .stride = kRows});
  });
  return out;
}

TEST_P(LowRankTest, EachTokenIsTheSameAloneAndInAnyStep) {
  const Thin one(random, kColumns, kRows, 8, 0.5f);
  const Thin other(random, kColumns, kRows, 3, 2);
  const LowRank first[] = {one.view};
  const LowRank both[] = {one.view, other.view};
  for (const int bits : {0, 4}) {
    const RandomMatrix matrix = random_matrix(
        random, arena, kRows, kColumns, bits, 32, FloatType::kF16);
    for (const int tokens : {3, 8, 70}) {
      const auto x = random_floats(random, tokens * kColumns);
      // The first token has none, then some have one, the last ones both.
      const int middle = 1 + tokens / 2;
      const LowRankRun runs[] = {
          {1, middle - 1, first}, {middle, tokens - middle, both}};
      const auto plain = multiply(set(), 1, matrix.packed, {}, x);
      for (const int threads : {1, 3}) {
        const auto all = multiply(set(), threads, matrix.packed, runs, x);
        for (int t = 0; t < tokens; ++t) {
          const auto own = [&](const std::vector<float>& of) {
            return std::vector(
                of.begin() + t * kRows, of.begin() + (t + 1) * kRows);
          };
          const std::span<const LowRank> parts = t == 0
              ? std::span<const LowRank>()
              : t < middle ? std::span(first)
                           : std::span<const LowRank>(both);
          const LowRankRun alone[] = {{0, 1, parts}};
          const auto expected = multiply(
              set(),
              1,
              matrix.packed,
              t == 0 ? std::span<const LowRankRun>() : alone,
              std::span(x).subspan(
                  static_cast<size_t>(t * kColumns), kColumns));
          ASSERT_EQ(own(all), expected) << bits << " " << tokens << " " << t;
          ASSERT_EQ(own(all) == own(plain), t == 0);
        }
      }
    }
  }
}

TEST_P(LowRankTest, PartsAreAddedInTheirOrder) {
  const RandomMatrix matrix =
      random_matrix(random, arena, kRows, kColumns, 4, 32, FloatType::kF16);
  const Thin one(random, kColumns, kRows, 8, 0.5f);
  const Thin other(random, kColumns, kRows, 3, 2);
  const auto x = random_floats(random, kColumns);
  const LowRank both[] = {one.view, other.view};
  const LowRankRun run[] = {{0, 1, both}};
  const auto out = multiply(set(), 2, matrix.packed, run, x);
  const auto plain = multiply(set(), 2, matrix.packed, {}, x);
  std::vector<double> expected(plain.begin(), plain.end());
  for (const Thin* thin : {&one, &other}) {
    for (int r = 0; r < thin->view.rank; ++r) {
      double sum = 0;
      for (size_t k = 0; k < kColumns; ++k) {
        sum += static_cast<double>(x[k]) *
            thin->a[static_cast<size_t>(r) * kColumns + k];
      }
      for (size_t i = 0; i < kRows; ++i) {
        expected[i] += static_cast<double>(thin->view.scale) * sum *
            thin->b[static_cast<size_t>(r) * kRows + i];
      }
    }
  }
  for (size_t i = 0; i < kRows; ++i) {
    EXPECT_NEAR(out[i], expected[i], 1e-5 * (1 + std::abs(expected[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    LowRankTest,
    testing::ValuesIn(supported_isas()),
    [](const auto& each) { return std::string(to_string(each.param)); });

} // namespace
} // namespace ingle
