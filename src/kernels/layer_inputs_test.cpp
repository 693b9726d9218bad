// What layers get of a token for themselves, and what they make of it: against
// plain f64, and the same bits whatever tokens are beside it.
#include "kernels/layer_inputs.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/testing/bounds.h"
#include "kernels/testing/random_weights.h"

namespace ingle {
namespace {

constexpr int kHidden = 96;
constexpr int kWidth = 32;
constexpr int kLayers = 3;
constexpr int kVocab = 50;
constexpr float kEps = 1e-5f;
constexpr int kTokens = 23;

using Numbers = std::vector<double>;

Numbers times(const float* x, const RandomMatrix& m) {
  const auto columns = static_cast<size_t>(m.packed.columns);
  Numbers y(static_cast<size_t>(m.packed.rows));
  for (size_t n = 0; n < y.size(); ++n) {
    for (size_t i = 0; i < columns; ++i) {
      y[n] += double{x[i]} * m.values[n * columns + i];
    }
  }
  return y;
}

// x, [weight.size()], in place.
void normalise(double* x, const std::vector<float>& weight) {
  double squares = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    squares += x[i] * x[i];
  }
  const double size = static_cast<double>(weight.size());
  for (size_t i = 0; i < weight.size(); ++i) {
    x[i] *= weight[i] / std::sqrt(squares / size + kEps);
  }
}

double relative_error(const std::vector<float>& a, const Numbers& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

class LayerInputsTest : public testing::TestWithParam<Isa> {
 protected:
  RandomMatrix matrix(int rows, int columns, int bits) {
    return random_matrix(
        random, arena, rows, columns, bits, 32, FloatType::kF16);
  }

  std::mt19937 random{11};
  Arena arena;
  ThreadPool pool{2};
  KernelContext context{kernel_set(GetParam()), pool, Inputs::kTwoPlanes};
  const std::vector<float> x = random_floats(random, kTokens* kHidden);
};

TEST_P(LayerInputsTest, TheyAreNearTheExactAndTheSameForAnyTokens) {
  std::vector<int32_t> ids;
  for (int t = 0; t < kTokens; ++t) {
    ids.push_back(t * 7 % kVocab);
  }
  for (const int bits : {4, 0}) {
    const RandomMatrix table = matrix(kVocab, kLayers * kWidth, bits);
    const RandomMatrix projection = matrix(kLayers * kWidth, kHidden, bits);
    const auto norm = random_floats(random, kWidth);
    const LayerInputsView view{
        .table = &table.packed,
        .projection = {&projection.packed},
        .norm = {norm.data(), kEps},
        .width = kWidth,
        .table_scale = 3,
        .projection_scale = 0.01f}; // so that the norm's eps counts
    std::vector<float> out(kTokens * kLayers * kWidth);
    layer_inputs(context, view, ids, x.data(), out.data());
    Numbers expected;
    for (int t = 0; t < kTokens; ++t) {
      Numbers projected = times(x.data() + t * kHidden, projection);
      const float* row =
          table.values.data() + ids[static_cast<size_t>(t)] * kLayers * kWidth;
      for (double& value : projected) {
        value *= view.projection_scale;
      }
      for (int layer = 0; layer < kLayers; ++layer) {
        normalise(projected.data() + layer * kWidth, norm);
      }
      for (int i = 0; i < kLayers * kWidth; ++i) {
        expected.push_back(
            (projected[static_cast<size_t>(i)] + 3 * double{row[i]}) /
            std::sqrt(2.0));
      }
      std::vector<float> alone(kLayers * kWidth);
      layer_inputs(
          context,
          view,
          std::span(ids).subspan(static_cast<size_t>(t), 1),
          x.data() + t * kHidden,
          alone.data());
      ASSERT_THAT(
          alone,
          testing::ElementsAreArray(
              out.begin() + t * kLayers * kWidth,
              out.begin() + (t + 1) * kLayers * kWidth));
    }
    EXPECT_LT(relative_error(out, expected), kMlpLayerBound);
  }
}

// With all that a layer does to what it has and what is added.
TEST_P(LayerInputsTest, GatesAreMultipliedByThem) {
  const RandomMatrix gate = matrix(kWidth, kHidden, 4);
  const RandomMatrix down = matrix(kHidden, kWidth, 4);
  const auto norm = random_floats(random, kHidden);
  const auto inputs = random_floats(random, kTokens * kLayers * kWidth);
  MlpView view{
      .norm = {},
      .gate = {&gate.packed},
      .down = {&down.packed},
      .activation = Activation::kGelu,
      .residual = {{norm.data(), kEps}, 1, 0.75f},
      .factors = inputs.data() + kWidth, // of the second layer
      .factors_stride = kLayers * kWidth};
  std::vector<float> out(x.size());
  mlp_and_add(context, view, kTokens, x.data(), out.data());
  Numbers expected;
  for (int t = 0; t < kTokens; ++t) {
    const float* own = x.data() + t * kHidden;
    const Numbers gated = times(own, gate);
    std::vector<float> inner;
    for (size_t i = 0; i < gated.size(); ++i) {
      inner.push_back(static_cast<float>(
          gated[i] * 0.5 * std::erfc(-gated[i] / std::sqrt(2.0)) *
          view.factors[static_cast<size_t>(t * kLayers * kWidth) + i]));
    }
    Numbers y = times(inner.data(), down);
    normalise(y.data(), norm);
    for (size_t i = 0; i < y.size(); ++i) {
      expected.push_back(0.75 * (own[i] + y[i]));
    }
    MlpView one = view;
    one.factors += t * kLayers * kWidth;
    std::vector<float> alone(kHidden);
    mlp_and_add(context, one, 1, own, alone.data());
    ASSERT_THAT(
        alone,
        testing::ElementsAreArray(
            out.begin() + t * kHidden, out.begin() + (t + 1) * kHidden));
  }
  EXPECT_LT(relative_error(out, expected), kMlpLayerBound);
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    LayerInputsTest,
    testing::ValuesIn(supported_isas()),
    [](const auto& each) { return std::string(to_string(each.param)); });

} // namespace
} // namespace ingle
