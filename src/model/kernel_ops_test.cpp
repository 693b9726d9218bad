// The CPU kernels' ops against MLX's own in f32, on the same weights; at once,
// and as a part of MLX's graph.
#include "model/kernel_ops.h"

#include <cmath>

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/random.h>
#include <mlx/transforms.h>

#include "cache/array_kv_cache.h"
#include "cache/block_kv_cache.h"
#include "kernels/isa.h"
#include "kernels/testing/bounds.h"

namespace ingle {
namespace {

constexpr int kHidden = 96;
constexpr int kInner = 160;
constexpr int kVocab = 100;
constexpr float kEps = 1e-5f;
constexpr AttentionShape kShape = {6, 2, 32, 0.1f};

const std::byte* bytes_of(const mx::array& array) {
  return reinterpret_cast<const std::byte*>(array.data<uint8_t>());
}

// Quantised weights, in MLX's arrays and packed from them.
class Weights {
 public:
  // `is_other`: with layer norms, biases and sinks, and a plain MLP.
  explicit Weights(const Rope& rope, bool is_other = false)
      : head(matrix(kVocab, kHidden, 8)) {
    add_layer(rope, is_other);
    add_layer(rope, is_other);
  }

  const MlpWeights& mlp() const {
    return std::get<MlpWeights>(blocks[1]);
  }

 private:
  Arena arena_; // before what is packed in it

 public:
  std::vector<Block> blocks; // two layers
  Matrix head;

 private:
  Matrix matrix(int rows, int columns, int bits) {
    const mx::array dense = mx::multiply(
        mx::random::normal({rows, columns}, mx::float32),
        mx::array(1 / std::sqrt(static_cast<float>(columns))));
    Matrix m;
    m.quantization = {32, bits};
    const auto parts = mx::quantize(dense, 32, bits);
    m.weight = parts[0];
    m.scales = parts[1];
    m.biases = parts[2];
    mx::eval(m.weight, *m.scales, *m.biases);
    m.packed = pack_quantized(
        arena_,
        rows,
        columns,
        bits,
        32,
        FloatType::kF32,
        {bytes_of(m.weight), bytes_of(*m.scales), bytes_of(*m.biases)});
    return m;
  }
  Linear linear(int rows, int columns, int bits = 4) {
    return {matrix(rows, columns, bits), std::nullopt};
  }
  static mx::array norm() {
    mx::array weight = mx::random::uniform(0.5f, 1.5f, {kHidden});
    mx::eval(weight);
    return weight;
  }
  static mx::array bias(int width) {
    mx::array values = mx::random::normal({width}, mx::float32);
    mx::eval(values);
    return values;
  }
  void add_layer(const Rope& rope, bool is_other) {
    AttentionBlock attention{
        some_attention(), kShape, &rope, blocks.size() / 2};
    MlpWeights mlp = some_mlp();
    if (is_other) {
      attention.weights.norm_bias = bias(kHidden);
      attention.weights.o.bias = bias(kHidden);
      attention.weights.sinks = bias(kShape.heads);
      mlp.norm_bias = bias(kHidden);
      mlp.up.reset();
      mlp.gate.bias = bias(kInner);
      mlp.activation = Activation::kGelu;
    }
    blocks.emplace_back(std::move(attention));
    blocks.emplace_back(std::move(mlp));
  }
  AttentionWeights some_attention() {
    const int q = kShape.heads * kShape.head_dim;
    const int kv = kShape.kv_heads * kShape.head_dim;
    return {
        norm(),
        linear(q, kHidden),
        linear(kv, kHidden),
        linear(kv, kHidden, 6),
        linear(kHidden, q)};
  }
  // The formats of gate and up differ, as a file's may.
  MlpWeights some_mlp() {
    return {
        norm(),
        linear(kInner, kHidden, 8),
        linear(kInner, kHidden, 4),
        linear(kHidden, kInner)};
  }
};

mx::array some_tokens(int count) {
  mx::array x = mx::random::normal({count, kHidden}, mx::float32);
  mx::eval(x);
  return x;
}

// sqrt(mean((a - b)^2) / mean(b^2))
double relative_error(const mx::array& a, const mx::array& b) {
  const auto size = [](const mx::array& x) {
    return mx::sum(mx::square(x)).item<float>();
  };
  return std::sqrt(size(mx::subtract(a, b)) / size(b));
}

class KernelOpsTest : public testing::TestWithParam<Isa> {
 protected:
  // A step of the tokens `x`, of which only the number counts, in one layer.
  mx::array
  run(KvState& kv, CpuKernels* with, const mx::array& x, const Weights& of) {
    const std::vector<TokenId> ids(static_cast<size_t>(x.shape(0)));
    const Row row{ids, &kv, Logits::kAll};
    Step step({&row, 1}, with);
    return run_blocks(step, x, std::span(of.blocks).first(2), kEps);
  }
  mx::array run(KvState& kv, CpuKernels* with, const mx::array& x) {
    return run(kv, with, x, weights);
  }
  KvState make_kv(const CpuKernels* with, size_t layers = 1) const {
    std::vector<std::unique_ptr<KvCache>> caches;
    for (size_t i = 0; i < layers; ++i) {
      caches.push_back(make_kv_cache(kShape, mx::float32, with != nullptr));
    }
    return KvState(std::move(caches));
  }
  static void finish(KvState& kv, const mx::array& out) {
    auto outputs = kv.pending_arrays();
    outputs.push_back(out);
    mx::eval(outputs);
    ASSERT_TRUE(kv.commit().is_ok());
  }

  CpuKernels kernels{GetParam(), 2, Numerics::kNear};
  const Rope rope{{}, kShape.head_dim};
  const Weights weights{rope};
};

TEST_P(KernelOpsTest, LayerIsNearThatOfMlxsOps) {
  KvState ours = make_kv(&kernels);
  KvState theirs = make_kv(nullptr);
  for (const int tokens : {40, 1, 3}) {
    const mx::array x = some_tokens(tokens);
    const mx::array out = run(ours, &kernels, x);
    finish(ours, out);
    const mx::array expected = run(theirs, nullptr, x);
    finish(theirs, expected);
    EXPECT_LT(relative_error(out, expected), attention_layer_bound(16));
  }
}

// Half of a head turns, by pairs of neighbours, and queries grow with their
// position.
TEST_P(KernelOpsTest, LayerOfTheOtherKindIsNearThatOfMlxsOps) {
  RopeConfig config;
  config.rotary_factor = 0.5f;
  config.traditional = true;
  config.amplitude = 1.25f;
  config.query_beta = 0.5f;
  config.original_context = 16;
  const Rope other_rope(config, kShape.head_dim);
  const Weights other(other_rope, true);
  KvState ours = make_kv(&kernels);
  KvState theirs = make_kv(nullptr);
  for (const int tokens : {40, 1, 3}) {
    const mx::array x = some_tokens(tokens);
    const mx::array out = run(ours, &kernels, x, other);
    finish(ours, out);
    const mx::array expected = run(theirs, nullptr, x, other);
    finish(theirs, expected);
    EXPECT_LT(relative_error(out, expected), attention_layer_bound(16));
  }
  Step with({}, &kernels);
  const Step without({}, nullptr);
  const MlpWeights& mlp = other.mlp();
  for (const int tokens : {1, 23}) {
    const mx::array x = some_tokens(tokens);
    EXPECT_LT(
        relative_error(
            run_blocks(with, x, std::span(other.blocks).subspan(1, 1), kEps),
            mlp_and_add(Step({}, nullptr), x, mlp, kEps)),
        kMlpLayerBound);
    const auto logits = [&](const Step& step) {
      return norm_and_head(
          step, x, *mlp.norm, other.head, kEps, 0, &*mlp.norm_bias);
    };
    EXPECT_LT(relative_error(logits(with), logits(without)), kMlpLayerBound);
  }
}

// The first layer's values are its keys, normed; the second has none of its
// own.
TEST_P(KernelOpsTest, SharedKeysAndValuesAreNearThoseOfMlxsOps) {
  Weights shared(rope);
  auto& donor = std::get<AttentionBlock>(shared.blocks[0]);
  donor.weights.v.reset();
  donor.weights.v_norm = mx::random::uniform(0.5f, 1.5f, {kShape.head_dim});
  mx::eval(*donor.weights.v_norm);
  auto& sharer = std::get<AttentionBlock>(shared.blocks[2]);
  sharer.weights.k.reset();
  sharer.weights.v.reset();
  sharer.layer = donor.layer;
  const auto run_all = [&](KvState& kv, CpuKernels* with, const mx::array& x) {
    const std::vector<TokenId> ids(static_cast<size_t>(x.shape(0)));
    const Row row{ids, &kv, Logits::kAll};
    Step step({&row, 1}, with);
    return run_blocks(step, x, shared.blocks, kEps);
  };
  KvState ours = make_kv(&kernels);
  KvState later = make_kv(&kernels);
  KvState theirs = make_kv(nullptr);
  for (const int tokens : {40, 1, 3}) {
    const mx::array x = some_tokens(tokens);
    const mx::array out = run_all(ours, &kernels, x);
    finish(ours, out);
    const mx::array evaluated =
        run_all(later, &kernels, mx::add(x, mx::array(0.0f)));
    finish(later, evaluated);
    EXPECT_TRUE(mx::array_equal(out, evaluated).item<bool>());
    const mx::array expected = run_all(theirs, nullptr, x);
    finish(theirs, expected);
    EXPECT_LT(relative_error(out, expected), attention_layer_bound(16));
  }
}

// A layer without keys need not compute a prompt's other tokens.
TEST_P(KernelOpsTest, WantedTokensAloneGetTheBitsThatTheyGetBesideAll) {
  Weights shared(rope);
  auto& sharer = std::get<AttentionBlock>(shared.blocks[2]);
  sharer.weights.k.reset();
  sharer.weights.v.reset();
  sharer.layer = 0;
  const std::span<const Block> blocks(shared.blocks);
  const std::vector<TokenId> ids(40);
  const std::span all(ids);
  for (CpuKernels* with : {&kernels, static_cast<CpuKernels*>(nullptr)}) {
    std::vector<KvState> states;
    for (int row = 0; row < 6; ++row) {
      states.push_back(make_kv(with));
    }
    for (int i = 0; i < 2; ++i) { // nothing, and then something before them
      const auto rows_of = [&](size_t first) {
        return std::vector<Row>{
            {all.first(20), &states[first], Logits::kLast},
            {all.first(13), &states[first + 1], Logits::kNone},
            {all.first(5), &states[first + 2], Logits::kAll}};
      };
      const mx::array x = some_tokens(38);
      const auto beside = rows_of(0);
      Step whole(beside, with);
      const mx::array expected =
          *take_wanted(whole, run_blocks(whole, x, blocks, kEps));
      const auto alone = rows_of(3);
      Step first(alone, with);
      const mx::array made = run_blocks(first, x, blocks.first(2), kEps);
      Step last = first.wanted();
      ASSERT_EQ(last.rows().size(), 2u);
      const mx::array out =
          run_blocks(last, *take_wanted(first, made), blocks.subspan(2), kEps);
      ASSERT_EQ(out.shape(), mx::Shape({6, kHidden}));
      mx::eval(out, expected);
      if (with != nullptr) {
        EXPECT_TRUE(mx::array_equal(out, expected).item<bool>());
      } else {
        EXPECT_LT(relative_error(out, expected), 1e-5);
      }
      for (KvState& state : states) {
        mx::eval(state.pending_arrays());
        ASSERT_TRUE(state.commit().is_ok());
      }
    }
  }
}

TEST_P(KernelOpsTest, MlpAndHeadAreNearThoseOfMlxsOps) {
  Step with({}, &kernels);
  const Step without({}, nullptr);
  for (const int tokens : {1, 23}) {
    const mx::array x = some_tokens(tokens);
    const MlpWeights& mlp = weights.mlp();
    EXPECT_LT(
        relative_error(
            run_blocks(with, x, std::span(weights.blocks).subspan(1, 1), kEps),
            mlp_and_add(Step({}, nullptr), x, mlp, kEps)),
        kMlpLayerBound);
    EXPECT_LT(
        relative_error(
            norm_and_head(with, x, *mlp.norm, weights.head, kEps),
            norm_and_head(without, x, *mlp.norm, weights.head, kEps)),
        kMlpLayerBound);
  }
}

TEST_P(KernelOpsTest, EmbeddingIsThatOfMlxsOps) {
  const std::vector<TokenId> ids = {7, 0, kVocab - 1, 7};
  KvState kv = make_kv(&kernels);
  const Row row{ids, &kv, Logits::kAll};
  const mx::array out = embed(Step({&row, 1}, &kernels), weights.head);
  const mx::array expected = embed(Step({&row, 1}, nullptr), weights.head);
  EXPECT_LT(relative_error(out, expected), 1e-6);
}

TEST_P(KernelOpsTest, BlocksTogetherGiveTheBitsOfOneAfterTheOther) {
  KvState together = make_kv(&kernels, 2);
  KvState apart = make_kv(&kernels, 2);
  const std::span blocks(weights.blocks);
  for (const int tokens : {40, 1, 3}) {
    const mx::array x = some_tokens(tokens);
    const std::vector<TokenId> ids(static_cast<size_t>(tokens));
    const Row rows[] = {{ids, &together}, {ids, &apart}};
    Step all({&rows[0], 1}, &kernels);
    const mx::array out = run_blocks(all, x, blocks, kEps);
    finish(together, out);
    Step each({&rows[1], 1}, &kernels);
    mx::array expected = x;
    for (size_t i = 0; i < blocks.size(); ++i) {
      expected = run_blocks(each, expected, blocks.subspan(i, 1), kEps);
    }
    finish(apart, expected);
    EXPECT_TRUE(mx::array_equal(out, expected).item<bool>());
  }
}

// An op of a family that has no kernel runs on MLX; what follows it is then
// evaluated with it. Its result may have any layout.
TEST_P(KernelOpsTest, BlocksAfterAnOpOfMlxsGiveTheSameBits) {
  // Two layers, and two rows of a prompt each.
  const auto make_rows = [&] {
    std::vector<KvState> states;
    states.push_back(make_kv(&kernels, 2));
    states.push_back(make_kv(&kernels, 2));
    return states;
  };
  auto at_once = make_rows();
  auto later = make_rows();
  const auto run_rows = [&](std::vector<KvState>& states, const mx::array& x) {
    const std::vector<TokenId> ids(static_cast<size_t>(x.shape(0)));
    const std::span all(ids);
    const Row rows[] = {
        {all.first(1), &states[0]}, {all.subspan(1), &states[1]}};
    Step step(rows, &kernels);
    return run_blocks(step, x, weights.blocks, kEps);
  };
  const auto finish_rows = [](std::vector<KvState>& states, mx::array out) {
    mx::eval(out);
    for (KvState& state : states) {
      ASSERT_TRUE(state.commit().is_ok());
    }
  };
  for (const int tokens : {40, 2, 5}) {
    const mx::array x = some_tokens(tokens);
    const mx::array expected = run_rows(at_once, x);
    EXPECT_TRUE(expected.is_available());
    EXPECT_TRUE(at_once[0].pending_arrays().empty());
    finish_rows(at_once, expected);

    mx::array turned = mx::contiguous(mx::transpose(x));
    mx::eval(turned);
    const mx::array out = run_rows(later, mx::transpose(turned));
    EXPECT_FALSE(out.is_available());
    EXPECT_EQ(later[0].pending_arrays().size(), 1u);
    EXPECT_EQ(later[1].pending_arrays().size(), 1u);
    finish_rows(later, out);
    EXPECT_TRUE(mx::array_equal(out, expected).item<bool>());
  }
}

TEST_P(KernelOpsTest, RowsAreTakenInTheirOrder) {
  const mx::array x = some_tokens(5);
  const mx::array rows = kernel_take_rows(kernels, x, {4, 0});
  EXPECT_TRUE(
      mx::array_equal(rows, mx::take(x, mx::array({4, 0}), 0)).item<bool>());
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    KernelOpsTest,
    testing::ValuesIn(supported_isas()),
    [](const testing::TestParamInfo<Isa>& each) {
      return std::string(to_string(each.param));
    });

} // namespace
} // namespace ingle
