// The kernels' gated delta net against MLX's own ops in f32, on the same
// weights; at once, and as a part of MLX's graph.
#include "model/block.h"

#include <cmath>
#include <optional>

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/random.h>
#include <mlx/transforms.h>

#include "kernels/isa.h"
#include "kernels/testing/bounds.h"

namespace ingle {
namespace {

constexpr int kHidden = 64;
constexpr float kEps = 1e-6f;
constexpr GatedDeltaShape kShape{2, 4, 32, 24, 4};

mx::array normal(const mx::Shape& shape, float scale = 1) {
  mx::array x = mx::random::normal(shape, mx::float32, 0, scale);
  mx::eval(x);
  return x;
}

// Dense weights, in MLX's arrays and packed from them.
class Weights {
 private:
  Arena arena_; // before what is packed in it

  Linear linear(int rows, int columns) {
    Matrix m{
        .weight = normal(
            {rows, columns}, 1 / std::sqrt(static_cast<float>(columns)))};
    m.packed = pack_dense(
        arena_,
        rows,
        columns,
        FloatType::kF32,
        reinterpret_cast<const std::byte*>(m.weight.data<float>()));
    return {std::move(m), std::nullopt};
  }
  static mx::array exp_of(const mx::array& x) {
    mx::array y = mx::exp(x);
    mx::eval(y);
    return y;
  }

 public:
  GatedDeltaWeights delta = {
      normal({kHidden}),
      linear(kShape.channels(), kHidden),
      linear(kShape.value_width(), kHidden),
      linear(kShape.value_heads, kHidden),
      linear(kShape.value_heads, kHidden),
      linear(kHidden, kShape.value_width()),
      normal({kShape.taps, kShape.channels()}),
      exp_of(normal({kShape.value_heads})),
      normal({kShape.value_heads}),
      normal({kShape.value_dim})};
};

// sqrt(mean((a - b)^2) / mean(b^2))
double relative_error(const mx::array& a, const mx::array& b) {
  const auto size = [](const mx::array& x) {
    return mx::sum(mx::square(x)).item<float>();
  };
  return std::sqrt(size(mx::subtract(a, b)) / size(b));
}

class GatedDeltaOpTest : public testing::TestWithParam<Isa> {
 protected:
  static KvState make_kv(const CpuKernels* with) {
    std::vector<std::unique_ptr<KvCache>> caches;
    caches.push_back(
        make_recurrent_cache(kShape, mx::float32, with != nullptr));
    return KvState(std::move(caches));
  }
  // A step of the tokens `x`, of which only the number counts.
  mx::array run(KvState& kv, CpuKernels* with, const mx::array& x) {
    const std::vector<TokenId> ids(static_cast<size_t>(x.shape(0)));
    const Row row{ids, &kv, Logits::kAll};
    Step step({&row, 1}, with);
    return run_blocks(step, x, {&block, 1}, kEps);
  }
  static void finish(KvState& kv, const mx::array& out) {
    auto outputs = kv.pending_arrays();
    outputs.push_back(out);
    mx::eval(outputs);
    ASSERT_TRUE(kv.commit().is_ok());
  }

  CpuKernels kernels{GetParam(), 2, Numerics::kNear};
  Weights weights;
  const Block block = GatedDeltaBlock{weights.delta, kShape, 0};
};

TEST_P(GatedDeltaOpTest, IsNearThatOfMlxsOps) {
  KvState ours = make_kv(&kernels);
  KvState theirs = make_kv(nullptr);
  for (const int tokens : {40, 1, 2, 3}) {
    const mx::array x = normal({tokens, kHidden});
    const mx::array out = run(ours, &kernels, x);
    finish(ours, out);
    const mx::array expected = run(theirs, nullptr, x);
    finish(theirs, expected);
    EXPECT_LT(relative_error(out, expected), 1e-5); // dense: all in f32
  }
  EXPECT_EQ(ours.offset(), 46);
  EXPECT_EQ(theirs.offset(), 46);
}

// In MLX's ops sums may be in another order.
TEST_P(GatedDeltaOpTest, TokensAtOnceEqualThemselvesInSteps) {
  const mx::array x = normal({30, kHidden});
  for (CpuKernels* with : {&kernels, static_cast<CpuKernels*>(nullptr)}) {
    KvState at_once = make_kv(with);
    const mx::array expected = run(at_once, with, x);
    finish(at_once, expected);
    KvState in_steps = make_kv(with);
    std::vector<mx::array> parts;
    for (const auto& [begin, end] : {std::pair{0, 7}, {7, 8}, {8, 30}}) {
      mx::array piece =
          mx::contiguous(mx::slice(x, {begin, 0}, {end, kHidden}));
      mx::eval(piece);
      parts.push_back(run(in_steps, with, piece));
      finish(in_steps, parts.back());
    }
    const mx::array out = mx::concatenate(parts, 0);
    if (with != nullptr) {
      EXPECT_TRUE(mx::array_equal(out, expected).item<bool>());
    } else {
      EXPECT_LT(relative_error(out, expected), 1e-6);
    }
  }
}

TEST_P(GatedDeltaOpTest, RowsEachHaveTheirState) {
  const mx::array x = normal({12, kHidden});
  for (CpuKernels* with : {&kernels, static_cast<CpuKernels*>(nullptr)}) {
    std::vector<mx::array> alone;
    for (const auto& [begin, end] : {std::pair{0, 9}, {9, 12}}) {
      KvState kv = make_kv(with);
      mx::array piece =
          mx::contiguous(mx::slice(x, {begin, 0}, {end, kHidden}));
      mx::eval(piece);
      alone.push_back(run(kv, with, piece));
      finish(kv, alone.back());
    }
    KvState first = make_kv(with);
    KvState second = make_kv(with);
    const std::vector<TokenId> ids(12);
    const Row rows[] = {
        {std::span(ids).first(9), &first}, {std::span(ids).first(3), &second}};
    Step step(rows, with);
    const mx::array out = run_blocks(step, x, {&block, 1}, kEps);
    finish(first, out);
    finish(second, out);
    EXPECT_LT(
        relative_error(out, mx::concatenate(alone, 0)),
        with == nullptr ? 1e-6 : 1e-30);
  }
}

// What follows an op of MLX's is evaluated with it.
TEST_P(GatedDeltaOpTest, AfterAnOpOfMlxsItGivesTheSameBits) {
  KvState at_once = make_kv(&kernels);
  KvState later = make_kv(&kernels);
  for (const int tokens : {40, 1, 3}) {
    const mx::array x = normal({tokens, kHidden});
    const mx::array expected = run(at_once, &kernels, x);
    EXPECT_TRUE(expected.is_available());
    finish(at_once, expected);

    mx::array turned = mx::contiguous(mx::transpose(x));
    mx::eval(turned);
    const mx::array out = run(later, &kernels, mx::transpose(turned));
    EXPECT_FALSE(out.is_available());
    EXPECT_EQ(later.pending_arrays().size(), 1u);
    finish(later, out);
    EXPECT_TRUE(mx::array_equal(out, expected).item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    GatedDeltaOpTest,
    testing::ValuesIn(supported_isas()),
    [](const testing::TestParamInfo<Isa>& each) {
      return std::string(to_string(each.param));
    });

} // namespace
} // namespace ingle
