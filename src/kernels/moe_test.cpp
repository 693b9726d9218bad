// A mixture of experts: against plain f64, and the same bits however the work
// is cut.
#include "kernels/moe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/testing/bounds.h"
#include "kernels/testing/random_weights.h"

namespace ingle {
namespace {

constexpr int kHidden = 96;
constexpr float kEps = 1e-5f;

struct MixtureConfig {
  int experts = 8;
  int top_k = 3;
  int inner = 64;
  bool renormalises = true;
  int bits = 4;
  int up_bits = 4;
  int router_bits = 8;
  int shared_inner = 0; // of one that all tokens have; 0: none
  bool has_biases = false; // and the clamped activation
  int beside_inner = 0; // of an MLP beside them, with more norms; 0: none
};

std::vector<MixtureConfig> mixture_configs() {
  return {
      {},
      {.experts = 16, .top_k = 8, .renormalises = false, .router_bits = 0},
      {.experts = 5, .top_k = 5, .inner = 96, .up_bits = 6},
      {.experts = 4, .top_k = 1, .inner = 40, .bits = 0, .up_bits = 0},
      {.shared_inner = 128},
      {.top_k = 1, .inner = 128, .up_bits = 6, .shared_inner = 64},
      {.inner = 96, .router_bits = 0, .has_biases = true},
      {.top_k = 2, .up_bits = 8, .has_biases = true},
      {.beside_inner = 128},
      {.inner = 96, .router_bits = 0, .beside_inner = 64}};
}

class Mixture {
 public:
  explicit Mixture(const MixtureConfig& c) : config(c) {
    router = matrix(c.experts, kHidden, c.router_bits);
    for (int i = 0; i < c.experts; ++i) {
      gates.push_back(matrix(c.inner, kHidden, c.bits));
      ups.push_back(matrix(c.inner, kHidden, c.up_bits));
      downs.push_back(matrix(kHidden, c.inner, c.inner % 32 == 0 ? c.bits : 0));
      gate.push_back(gates.back().packed);
      up.push_back(ups.back().packed);
      down.push_back(downs.back().packed);
    }
    norm = random_floats(random, kHidden);
    if (c.shared_inner > 0) {
      gates.push_back(matrix(c.shared_inner, kHidden, c.bits));
      ups.push_back(matrix(c.shared_inner, kHidden, c.up_bits));
      downs.push_back(matrix(kHidden, c.shared_inner, c.bits));
      share = matrix(1, kHidden, c.router_bits);
    }
    router_bias = random_floats(random, c.experts);
    gate_bias = random_floats(random, c.experts * c.inner);
    up_bias = random_floats(random, c.experts * c.inner);
    down_bias = random_floats(random, c.experts * kHidden);
    if (c.beside_inner > 0) {
      gates.push_back(matrix(c.beside_inner, kHidden, c.bits));
      ups.push_back(matrix(c.beside_inner, kHidden, c.up_bits));
      downs.push_back(matrix(kHidden, c.beside_inner, c.bits));
    }
    expert_scales = random_floats(random, c.experts);
    for (auto* each : {&router_norm, &sum_norm, &mlp_norm, &mlp_sum_norm}) {
      *each = random_floats(random, kHidden);
    }
    beside = {
        .norm = {mlp_norm.data(), kEps},
        .gate = {&gates.back().packed},
        .up = {&ups.back().packed},
        .down = {&downs.back().packed},
        .residual = {{mlp_sum_norm.data(), kEps}}};
  }

  MoeView view() const {
    MoeView view{
        .norm = {norm.data(), kEps},
        .router = {&router.packed},
        .gate = gate,
        .up = up,
        .down = down,
        .top_k = config.top_k,
        .renormalises = config.renormalises};
    if (config.has_biases) {
      view.router.bias = router_bias.data();
      view.gate_bias = gate_bias.data();
      view.up_bias = up_bias.data();
      view.down_bias = down_bias.data();
      view.activation = Activation::kClampedSwiglu;
    }
    if (config.shared_inner > 0) {
      view.shared = {
          {&gates.back().packed}, {&ups.back().packed}, {&downs.back().packed}};
      view.share = {&share.packed};
    }
    if (config.beside_inner > 0) {
      view.router_norm = {router_norm.data(), kEps};
      view.expert_scales = expert_scales.data();
      view.sum_norm = {sum_norm.data(), kEps};
      view.beside = &beside;
      view.residual = {{norm.data(), kEps}, 1, 0.75f};
    }
    return view;
  }

  MixtureConfig config;
  std::mt19937 random{11};
  Arena arena;
  RandomMatrix router;
  RandomMatrix share;
  std::vector<RandomMatrix> gates, ups, downs;
  std::vector<PackedMatrix> gate, up, down;
  std::vector<float> norm;
  std::vector<float> router_bias, gate_bias, up_bias, down_bias;
  std::vector<float> router_norm, expert_scales, sum_norm;
  std::vector<float> mlp_norm, mlp_sum_norm;
  MlpView beside;

 private:
  RandomMatrix matrix(int rows, int columns, int bits) {
    return random_matrix(
        random, arena, rows, columns, bits, 32, FloatType::kF16);
  }
};

std::vector<float> inputs(int tokens, unsigned seed = 3) {
  std::mt19937 random(seed);
  return random_floats(random, tokens * kHidden);
}

std::vector<float> run(
    KernelContext& context,
    const Mixture& mixture,
    const std::vector<float>& x) {
  std::vector<float> out(x.size());
  moe_and_add(
      context,
      mixture.view(),
      static_cast<int>(x.size()) / kHidden,
      x.data(),
      out.data());
  return out;
}

std::vector<float> part_of(const std::vector<float>& x, int begin, int tokens) {
  const auto from = x.begin() + ptrdiff_t{begin} * kHidden;
  return {from, from + ptrdiff_t{tokens} * kHidden};
}

// The same in steps of `size` tokens.
std::vector<float> in_pieces(
    KernelContext& context,
    const Mixture& mixture,
    const std::vector<float>& x,
    int size) {
  const int tokens = static_cast<int>(x.size()) / kHidden;
  std::vector<float> out;
  for (int begin = 0; begin < tokens; begin += size) {
    const int count = std::min(size, tokens - begin);
    const auto part = run(context, mixture, part_of(x, begin, count));
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

using Numbers = std::vector<double>;

// `bias`: that of the m's rows, or null.
Numbers
times(const Numbers& x, const RandomMatrix& m, const float* bias = nullptr) {
  Numbers y(static_cast<size_t>(m.packed.rows));
  for (size_t n = 0; n < y.size(); ++n) {
    y[n] = bias == nullptr ? 0 : bias[n];
    for (size_t i = 0; i < x.size(); ++i) {
      y[n] += x[i] * m.values[n * x.size() + i];
    }
  }
  return y;
}

Numbers normed(const Numbers& x, const std::vector<float>& weight) {
  double squares = 0;
  for (const double value : x) {
    squares += value * value;
  }
  Numbers y;
  for (size_t i = 0; i < x.size(); ++i) {
    y.push_back(x[i] / std::sqrt(squares / kHidden + kEps) * weight[i]);
  }
  return y;
}

// What one expert makes of n, times `weight`, added to `sum`.
void add_expert(
    const Mixture& mixture,
    size_t expert,
    const Numbers& n,
    double weight,
    Numbers& sum) {
  const bool has_biases = mixture.config.has_biases;
  const auto bias_of = [&](const std::vector<float>& all) {
    const size_t width = all.size() / mixture.gate.size();
    return has_biases ? all.data() + expert * width : nullptr;
  };
  const Numbers gate =
      times(n, mixture.gates[expert], bias_of(mixture.gate_bias));
  Numbers inner = times(n, mixture.ups[expert], bias_of(mixture.up_bias));
  for (size_t i = 0; i < inner.size(); ++i) {
    if (has_biases) {
      const double g = std::min(gate[i], 7.0);
      inner[i] = (std::clamp(inner[i], -7.0, 7.0) + 1) * g /
          (1 + std::exp(-1.702 * g));
    } else {
      inner[i] *= gate[i] / (1 + std::exp(-gate[i]));
    }
  }
  const Numbers result =
      times(inner, mixture.downs[expert], bias_of(mixture.down_bias));
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] += weight * result[i];
  }
}

// What becomes of x and its experts' sum where there is an MLP beside them.
Numbers with_mlp(const Mixture& mixture, const Numbers& x, const Numbers& sum) {
  Numbers mlp(kHidden);
  add_expert(mixture, mixture.gate.size(), normed(x, mixture.mlp_norm), 1, mlp);
  mlp = normed(mlp, mixture.mlp_sum_norm);
  Numbers both = normed(sum, mixture.sum_norm);
  for (size_t i = 0; i < both.size(); ++i) {
    both[i] += mlp[i];
  }
  both = normed(both, mixture.norm);
  for (size_t i = 0; i < both.size(); ++i) {
    both[i] = 0.75 * (x[i] + both[i]);
  }
  return both;
}

// moe_and_add() of one token in f64; nothing where its experts are near a tie.
std::optional<Numbers> exact(const Mixture& mixture, const float* token) {
  const auto top_k = static_cast<size_t>(mixture.config.top_k);
  const bool has_mlp = mixture.config.beside_inner > 0;
  const Numbers x(token, token + kHidden);
  const Numbers n = normed(x, mixture.norm);
  const Numbers logits = times(
      has_mlp ? normed(x, mixture.router_norm) : n,
      mixture.router,
      mixture.config.has_biases ? mixture.router_bias.data() : nullptr);
  std::vector<size_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::ranges::sort(
      order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  const double peak = logits[order[0]];
  if (top_k < order.size() &&
      logits[order[top_k - 1]] - logits[order[top_k]] < 1e-2) {
    return std::nullopt;
  }
  double all = 0;
  double chosen = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const double weight = std::exp(logits[order[i]] - peak);
    all += weight;
    chosen += i < top_k ? weight : 0;
  }
  Numbers sum = has_mlp ? Numbers(kHidden) : x;
  for (size_t i = 0; i < top_k; ++i) {
    add_expert(
        mixture,
        order[i],
        n,
        std::exp(logits[order[i]] - peak) /
            (mixture.config.renormalises ? chosen : all) *
            (has_mlp ? mixture.expert_scales[order[i]] : 1),
        sum);
  }
  if (has_mlp) {
    return with_mlp(mixture, x, sum);
  }
  if (mixture.config.shared_inner > 0) {
    const double share = times(n, mixture.share)[0];
    add_expert(mixture, logits.size(), n, 1 / (1 + std::exp(-share)), sum);
  }
  return sum;
}

class MoeTest : public testing::TestWithParam<Isa> {
 protected:
  static KernelContext context(ThreadPool& pool, Isa isa = GetParam()) {
    return {kernel_set(isa), pool, Inputs::kTwoPlanes};
  }
};

INSTANTIATE_TEST_SUITE_P(
    Isas,
    MoeTest,
    testing::ValuesIn(supported_isas()),
    [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(MoeTest, IsNearTheExact) {
  constexpr int kTokens = 40;
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const MixtureConfig& config : mixture_configs()) {
    const Mixture mixture(config);
    const auto x = inputs(kTokens);
    const auto out = run(context, mixture, x);
    double difference = 0;
    double size = 0;
    int compared = 0;
    for (int t = 0; t < kTokens; ++t) {
      const auto expected = exact(mixture, x.data() + ptrdiff_t{t} * kHidden);
      compared += expected ? 1 : 0;
      for (size_t i = 0; expected && i < kHidden; ++i) {
        const double y = (*expected)[i];
        const double error = out[static_cast<size_t>(t) * kHidden + i] - y;
        difference += error * error;
        size += y * y;
      }
    }
    EXPECT_GT(compared, kTokens / 2);
    EXPECT_LT(std::sqrt(difference / size), kMoeLayerBound) << config.experts;
  }
}

// Beside others an expert has more of them, and others come before it.
TEST_P(MoeTest, TokensGetTheSameBitsWhateverIsBesideThem) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const MixtureConfig& config : mixture_configs()) {
    const Mixture mixture(config);
    const auto x = inputs(100);
    const auto together = run(context, mixture, x);
    for (const int size : {1, 2, 7, 16, 37, 99}) {
      ASSERT_EQ(in_pieces(context, mixture, x, size), together) << size;
    }
  }
}

TEST_P(MoeTest, TokensInAnotherOrderGetTheSameBits) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  const Mixture mixture(mixture_configs()[1]);
  constexpr int kTokens = 50;
  const auto x = inputs(kTokens);
  std::vector<float> reversed;
  for (int t = kTokens - 1; t >= 0; --t) {
    const auto token = part_of(x, t, 1);
    reversed.insert(reversed.end(), token.begin(), token.end());
  }
  const auto expected = run(context, mixture, x);
  const auto out = run(context, mixture, reversed);
  for (int t = 0; t < kTokens; ++t) {
    ASSERT_EQ(part_of(out, kTokens - 1 - t, 1), part_of(expected, t, 1)) << t;
  }
}

TEST_P(MoeTest, AnyNumberOfThreadsGivesTheSameBits) {
  ThreadPool one(1);
  auto alone = context(one);
  for (const MixtureConfig& config : mixture_configs()) {
    const Mixture mixture(config);
    for (const int tokens : {1, 60}) {
      const auto x = inputs(tokens);
      const auto expected = run(alone, mixture, x);
      for (const int threads : {2, 3, 5}) {
        ThreadPool pool(threads);
        auto together = context(pool);
        ASSERT_EQ(run(together, mixture, x), expected) << threads;
      }
    }
  }
}

TEST_P(MoeTest, AllInstructionSetsGiveTheSameBits) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  auto portable = this->context(pool, Isa::kPortable);
  for (const MixtureConfig& config : mixture_configs()) {
    const Mixture mixture(config);
    const auto x = inputs(40);
    ASSERT_EQ(run(context, mixture, x), run(portable, mixture, x));
  }
}

TEST_P(MoeTest, MayWriteWhereItReads) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  const Mixture mixture(mixture_configs().front());
  auto x = inputs(30);
  const auto expected = run(context, mixture, x);
  moe_and_add(context, mixture.view(), 30, x.data(), x.data());
  EXPECT_EQ(x, expected);
}

// One plane would pick another expert here and there.
TEST_P(MoeTest, RouterSeesTwoPlanesAlsoWhereExpertsSeeOne) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  KernelContext coarse{kernel_set(GetParam()), pool, Inputs::kOnePlane};
  MixtureConfig config{.experts = 64, .top_k = 1};
  config.renormalises = false; // then its weight is seen
  const Mixture mixture(config);
  const auto x = inputs(200);
  const auto fine = run(context, mixture, x);
  const auto out = run(coarse, mixture, x);
  for (int t = 0; t < 200; ++t) {
    double difference = 0;
    double size = 0;
    for (int i = t * kHidden; i < (t + 1) * kHidden; ++i) {
      const auto at = static_cast<size_t>(i);
      difference += std::pow(out[at] - fine[at], 2);
      size += std::pow(fine[at] - x[at], 2);
    }
    ASSERT_LT(difference, 0.2 * 0.2 * size) << t; // another expert: 1.4
  }
}

std::vector<ExpertChoice>
choose(std::vector<float> logits, size_t top_k, bool renormalises) {
  std::vector<ExpertChoice> choices(top_k);
  choose_experts(logits, renormalises, choices);
  return choices;
}

TEST(ExpertChoice, WeightsAreProbabilitiesOfAllOrOfTheChosen) {
  const float e = std::exp(1.0f);
  const auto of_all = choose({0, 1, -1, 1}, 2, false);
  const float all = 1 + 2 * e + 1 / e;
  EXPECT_EQ(of_all[0].expert, 1);
  EXPECT_EQ(of_all[1].expert, 3);
  EXPECT_FLOAT_EQ(of_all[0].weight, e / all);
  const auto of_chosen = choose({0, 1, -1, 2}, 2, true);
  EXPECT_FLOAT_EQ(of_chosen[0].weight, 1 / (1 + e));
  EXPECT_FLOAT_EQ(of_chosen[1].weight, e / (1 + e));
}

TEST(ExpertChoice, OfEqualOnesTheSmallerIndexIsChosen) {
  for (const auto& [logits, first, second] :
       {std::tuple{std::vector<float>{1, 1, 1, 1}, 0, 1},
        {std::vector<float>{0, 2, 1, 1}, 1, 2},
        {std::vector<float>{2, 0, 2, 2}, 0, 2},
        {std::vector<float>{0, 0, 0, 5}, 0, 3}}) {
    const auto choices = choose(logits, 2, true);
    EXPECT_EQ(choices[0].expert, first);
    EXPECT_EQ(choices[1].expert, second);
  }
}

TEST(ExpertChoice, LargeLogitsDoNotOverflow) {
  const auto choices = choose({-3e4f, 3e4f, 2e4f}, 1, true);
  EXPECT_EQ(choices[0].expert, 1);
  EXPECT_EQ(choices[0].weight, 1);
}

TEST(ExpertChoice, OfNansEachIsChosenOnce) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& logits :
       {std::vector<float>{nan, nan, nan}, {1, nan, 2}, {nan, 1, 2}}) {
    const auto choices = choose(logits, 3, true);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(choices[static_cast<size_t>(i)].expert, i);
    }
  }
}

} // namespace
} // namespace ingle
