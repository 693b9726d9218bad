// The kernels' mixture of experts against MLX's own ops in f32, on the same
// weights; at once, and as a part of MLX's graph.
#include "model/block.h"

#include <cmath>

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/random.h>
#include <mlx/transforms.h>

#include "kernels/isa.h"
#include "kernels/testing/bounds.h"

namespace ingle {
namespace {

constexpr int kHidden = 64;
constexpr int kInner = 96;
constexpr int kExperts = 8;
constexpr int kGroup = 32;
constexpr float kEps = 1e-6f;

mx::array evaluated(mx::array x) {
  mx::eval(x);
  return x;
}

mx::array normal(const mx::Shape& shape, float scale = 1) {
  return evaluated(mx::random::normal(shape, mx::float32, 0, scale));
}

const std::byte* bytes_of(const mx::array& x) {
  return reinterpret_cast<const std::byte*>(x.data<uint8_t>());
}

// Of 4 bits or dense, in MLX's arrays and packed from them.
class Weights {
 private:
  Arena arena_; // before what is packed in it
  int bits_;

  ExpertMatrices experts(int rows, int columns) {
    ExpertMatrices m{
        .weight = normal(
            {kExperts, rows, columns},
            1 / std::sqrt(static_cast<float>(columns)))};
    if (bits_ == 0) {
      for (int i = 0; i < kExperts; ++i) {
        const float* own =
            m.weight.data<float>() + ptrdiff_t{i} * rows * columns;
        m.packed.push_back(pack_dense(
            arena_,
            rows,
            columns,
            FloatType::kF32,
            reinterpret_cast<const std::byte*>(own)));
      }
      return m;
    }
    auto parts = mx::quantize(m.weight, kGroup, bits_);
    mx::eval(parts);
    m = {
        .weight = parts[0],
        .scales = parts[1],
        .biases = parts[2],
        .quantization = {kGroup, bits_}};
    for (size_t i = 0; i < kExperts; ++i) {
      const auto part = [&](const mx::array& all) {
        return bytes_of(all) + i * (all.nbytes() / kExperts);
      };
      m.packed.push_back(pack_quantized(
          arena_,
          rows,
          columns,
          bits_,
          kGroup,
          FloatType::kF32,
          {part(m.weight), part(*m.scales), part(*m.biases)}));
    }
    return m;
  }
  Linear linear(int rows, int columns) {
    Matrix m{.weight = normal({rows, columns}, 0.5f)};
    m.packed =
        pack_dense(arena_, rows, columns, FloatType::kF32, bytes_of(m.weight));
    return {std::move(m), std::nullopt};
  }

 public:
  Weights(int bits, bool renormalises, bool has_biases = false)
      : bits_(bits),
        moe{normal({kHidden}),
            linear(kExperts, kHidden),
            experts(kInner, kHidden),
            experts(kInner, kHidden),
            experts(kHidden, kInner),
            3,
            renormalises} {
    if (has_biases) {
      moe.router.bias = normal({kExperts});
      moe.gate.bias = normal({kExperts, kInner}, 4);
      moe.up.bias = normal({kExperts, kInner}, 4);
      moe.down.bias = normal({kExperts, kHidden});
      moe.activation = Activation::kClampedSwiglu;
    }
  }

  MoeWeights moe;

  // An expert that all tokens have.
  void add_shared(int inner) {
    moe.shared = SharedExpert{
        linear(1, kHidden),
        linear(inner, kHidden),
        linear(inner, kHidden),
        linear(kHidden, inner)};
  }
};

// sqrt(mean((a - b)^2) / mean(b^2))
double relative_error(const mx::array& a, const mx::array& b) {
  const auto size = [](const mx::array& x) {
    return mx::sum(mx::square(x)).item<float>();
  };
  return std::sqrt(size(mx::subtract(a, b)) / size(b));
}

class MoeOpTest : public testing::TestWithParam<Isa> {
 protected:
  static mx::array
  run(CpuKernels* with, const Weights& weights, const mx::array& x) {
    Step step({}, with);
    const Block block = weights.moe;
    return evaluated(run_blocks(step, x, {&block, 1}, kEps));
  }

  CpuKernels kernels{GetParam(), 2, Numerics::kNear};
};

INSTANTIATE_TEST_SUITE_P(
    Isas,
    MoeOpTest,
    testing::ValuesIn(supported_isas()),
    [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(MoeOpTest, IsNearThatOfMlxsOps) {
  mx::random::seed(5);
  for (const int bits : {0, 4}) {
    for (const bool renormalises : {false, true}) {
      const Weights weights(bits, renormalises);
      for (const int tokens : {1, 2, 30}) {
        const mx::array x = normal({tokens, kHidden});
        EXPECT_LT(
            relative_error(run(&kernels, weights, x), run(nullptr, weights, x)),
            bits == 0 ? 1e-5 : kMoeLayerBound)
            << bits << " bits, " << tokens << " tokens";
      }
    }
  }
}

TEST_P(MoeOpTest, SharedExpertIsNearThatOfMlxsOps) {
  mx::random::seed(7);
  Weights weights(4, true);
  const mx::array x = normal({30, kHidden});
  const mx::array without = run(nullptr, weights, x);
  weights.add_shared(48);
  for (const int tokens : {1, 30}) {
    const mx::array some =
        evaluated(mx::contiguous(mx::slice(x, {0, 0}, {tokens, kHidden})));
    EXPECT_LT(
        relative_error(
            run(&kernels, weights, some), run(nullptr, weights, some)),
        kMoeLayerBound);
  }
  EXPECT_GT(relative_error(run(&kernels, weights, x), without), 0.01);
}

// Of equal experts those of the smaller index, as the kernels have it.
TEST_P(MoeOpTest, TiesAreTheSameInBoth) {
  mx::random::seed(6);
  Weights weights(0, false);
  weights.moe.router.matrix = {};
  Arena arena;
  mx::array none = evaluated(mx::zeros({kExperts, kHidden}));
  weights.moe.router.matrix.packed =
      pack_dense(arena, kExperts, kHidden, FloatType::kF32, bytes_of(none));
  weights.moe.router.matrix.weight = none;
  const mx::array x = normal({20, kHidden});
  EXPECT_LT(
      relative_error(run(&kernels, weights, x), run(nullptr, weights, x)),
      1e-5);
}

TEST_P(MoeOpTest, BiasesAndTheClampedActivationAreThoseOfMlxsOps) {
  mx::random::seed(7);
  for (const int bits : {0, 4}) {
    const Weights weights(bits, true, true);
    for (const int tokens : {1, 30}) {
      const mx::array x = normal({tokens, kHidden});
      EXPECT_LT(
          relative_error(run(&kernels, weights, x), run(nullptr, weights, x)),
          bits == 0 ? 1e-5 : kMoeLayerBound);
    }
  }
}

TEST_P(MoeOpTest, IsTheSameWhenItsInputIsYetToBeMade) {
  const Weights weights(4, true);
  const mx::array x = normal({9, kHidden});
  const mx::array expected =
      run(&kernels, weights, evaluated(mx::multiply(x, mx::array(2.0f))));
  const mx::array later = mx::multiply(x, mx::array(2.0f));
  EXPECT_TRUE(
      mx::array_equal(run(&kernels, weights, later), expected).item<bool>());
}

TEST(MoeOp, NativeTypesComeOutAsTheyWentIn) {
  Weights weights(4, true);
  weights.moe.norm = mx::astype(weights.moe.norm, mx::bfloat16);
  weights.moe.router.matrix.weight =
      mx::astype(weights.moe.router.matrix.weight, mx::bfloat16);
  for (auto* each : {&weights.moe.gate, &weights.moe.up, &weights.moe.down}) {
    each->scales = mx::astype(*each->scales, mx::bfloat16);
    each->biases = mx::astype(*each->biases, mx::bfloat16);
  }
  const mx::array x = mx::astype(normal({7, kHidden}), mx::bfloat16);
  const mx::array out =
      evaluated(moe_and_add(Step({}, nullptr), x, weights.moe, kEps));
  EXPECT_EQ(out.dtype(), mx::bfloat16);
}

} // namespace
} // namespace ingle
