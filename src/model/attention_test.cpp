// MLX's own attention against one position after the other, in double.
#include "model/attention.h"

#include <cmath>

#include <gtest/gtest.h>
#include <mlx/fast.h>
#include <mlx/ops.h>
#include <mlx/random.h>
#include <mlx/transforms.h>

#include "model/ops.h"

namespace ingle {
namespace {

constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kDim = 32;
constexpr float kScale = 0.2f;

AttentionShape shape_of(int window, float soft_cap = 0, int bits = 16) {
  AttentionShape shape{kHeads, kKvHeads, kDim, kScale, soft_cap, window};
  if (bits < 16) {
    shape.kv = KvQuantization{bits, 32};
  }
  return shape;
}

// One far above the scores, one far below.
mx::array some_sinks() {
  return mx::array({20.0f, -20.0f, 0.5f, -1.0f});
}

mx::array random_heads(int heads, int length) {
  mx::array x = mx::random::normal({1, heads, length, kDim}, mx::float32);
  mx::eval(x);
  return x;
}

KvRows rows_of(const mx::array& x, const AttentionShape& shape) {
  if (!shape.kv) {
    return {x};
  }
  auto parts = mx::quantize(x, shape.kv->group_size, shape.kv->bits);
  mx::eval(parts);
  return {parts[0], parts[1], parts[2]};
}

mx::array plain(const KvRows& x, const AttentionShape& shape) {
  mx::array all = !shape.kv
      ? x.rows
      : mx::dequantize(
            x.rows, *x.scales, x.biases, shape.kv->group_size, shape.kv->bits);
  all = mx::contiguous(all);
  mx::eval(all);
  return all;
}

// Element d of the head's row; x is [1, heads, length, dim].
double at(const mx::array& x, int head, int64_t row, int d) {
  const int64_t index = (head * int64_t{x.shape(2)} + row) * kDim + d;
  return static_cast<double>(x.data<float>()[index]);
}

// What the head's query `i` attends to among the positions of kv.
std::vector<double> truth_of(
    const mx::array& queries,
    const mx::array& keys,
    const mx::array& values,
    const AttentionShape& shape,
    int64_t begin,
    int64_t position,
    int head,
    int i,
    const std::optional<mx::array>& sinks) {
  std::vector<double> out(kDim);
  double sum =
      sinks ? std::exp(static_cast<double>(sinks->data<float>()[head])) : 0;
  const int kv_head = head / (kHeads / kKvHeads);
  for (int64_t p = begin; p <= position; ++p) {
    if (shape.window > 0 && p + shape.window <= position) {
      continue;
    }
    double score = 0;
    for (int d = 0; d < kDim; ++d) {
      score += at(queries, head, i, d) * at(keys, kv_head, p - begin, d);
    }
    score *= static_cast<double>(shape.scale);
    const auto cap = static_cast<double>(shape.soft_cap);
    const double weight =
        std::exp(cap > 0 ? cap * std::tanh(score / cap) : score);
    sum += weight;
    for (int d = 0; d < kDim; ++d) {
      out[static_cast<size_t>(d)] += weight * at(values, kv_head, p - begin, d);
    }
  }
  for (double& value : out) {
    value /= sum;
  }
  return out;
}

// `length` queries that stand at `offset`, over positions from `begin` on.
void expect_attends(
    const AttentionShape& shape,
    int64_t begin,
    int64_t offset,
    int length,
    const std::optional<mx::array>& sinks = std::nullopt) {
  const auto keys = static_cast<int>(offset + length - begin);
  const mx::array queries = random_heads(kHeads, length);
  const KvView kv{
      rows_of(random_heads(kKvHeads, keys), shape),
      rows_of(random_heads(kKvHeads, keys), shape),
      begin};
  mx::array out = mx::contiguous(attend(queries, kv, shape, offset, sinks));
  mx::eval(out);
  ASSERT_EQ(out.shape(), queries.shape());
  const mx::array k = plain(kv.keys, shape);
  const mx::array v = plain(kv.values, shape);
  for (int head = 0; head < kHeads; ++head) {
    for (int i = 0; i < length; ++i) {
      const auto truth =
          truth_of(queries, k, v, shape, begin, offset + i, head, i, sinks);
      for (int d = 0; d < kDim; ++d) {
        ASSERT_NEAR(at(out, head, i, d), truth[static_cast<size_t>(d)], 2e-5)
            << "window " << shape.window << ", offset " << offset << ", begin "
            << begin << ", head " << head << ", query " << i;
      }
    }
  }
}

TEST(Attention, EveryKindSeesWhatItShould) {
  for (const int window : {0, 7}) {
    for (const float soft_cap : {0.0f, 2.0f}) {
      for (const int bits : {16, 8, 4}) {
        const AttentionShape shape = shape_of(window, soft_cap, bits);
        for (const auto& sinks : {std::optional<mx::array>(), {some_sinks()}}) {
          expect_attends(shape, 0, 0, 1, sinks);
          expect_attends(shape, 0, 0, 5, sinks);
          expect_attends(shape, 0, 6, 12, sinks);
          expect_attends(shape, 0, 30, 1, sinks);
        }
      }
    }
  }
}

// Acceptance 48.
TEST(Attention, mask_causal_equals_array) {
  const AttentionShape shape = shape_of(0);
  const mx::array queries = random_heads(kHeads, 9);
  const mx::array keys = random_heads(kKvHeads, 40);
  const mx::array values = random_heads(kKvHeads, 40);
  const mx::array causal =
      attend(queries, {{keys}, {values}, 0}, shape, 31); // MLX's "causal"
  const mx::array mask = attention_mask(31, 9, 0, 40, 0);
  const mx::array by_array = mx::fast::scaled_dot_product_attention(
      queries, keys, values, kScale, "", mask);
  EXPECT_TRUE(mx::array_equal(causal, by_array).item<bool>());
}

// Acceptance 51: for all offsets and lengths, and for a cache that still holds
// more than the first query sees.
TEST(Attention, window_mask_width_matches_keys) {
  constexpr int kWindow = 6;
  for (int offset = 0; offset < 20; ++offset) {
    for (int length = 1; length < 15; ++length) {
      for (const int more : {0, 1, 4}) {
        const int begin = std::max(0, offset - kWindow - more);
        const int keys = offset + length - begin;
        const mx::array mask =
            attention_mask(offset, length, begin, keys, kWindow);
        ASSERT_EQ(mask.shape(), mx::Shape({length, keys}));
        const mx::array seen = mx::sum(mx::astype(mask, mx::int32), -1);
        for (int i = 0; i < length; ++i) {
          ASSERT_EQ(
              mx::take(seen, i).item<int>(), std::min(offset + i + 1, kWindow));
        }
      }
      expect_attends(
          shape_of(kWindow), std::max(0, offset - kWindow), offset, length);
    }
  }
}

// Acceptance 57, on MLX's own path; the kernels have their bound in
// kernels/testing/bounds.h.
TEST(Attention, quant_sdpa_tiled_vs_unfused) {
  for (const int bits : {8, 4}) {
    const AttentionShape shape = shape_of(0, 0, bits);
    for (const int offset : {0, 40, 100}) {
      const int length = 60;
      const mx::array queries = random_heads(kHeads, length);
      const KvView kv{
          rows_of(random_heads(kKvHeads, offset + length), shape),
          rows_of(random_heads(kKvHeads, offset + length), shape),
          0};
      for (const auto& sinks : {std::optional<mx::array>(), {some_sinks()}}) {
        const mx::array whole = attend(queries, kv, shape, offset, sinks);
        for (const int tile : {16, 64, 512}) {
          const mx::array tiled =
              attend_in_tiles(queries, kv, shape, offset, tile, sinks);
          mx::array error = mx::max(mx::abs(mx::subtract(tiled, whole)));
          EXPECT_LT(error.item<float>(), 1e-5f); // 2 / 128 asked for, in f32
        }
      }
    }
  }
}

// Acceptance 200, with MLX's ops (the kernels': layer_test.cpp). One token sees
// itself alone: what is added is made of its values. With the norm it does not
// matter that one head's are three times as large.
TEST(Attention, v_norm_unscaled_and_scale_1) {
  constexpr int kHidden = 16;
  constexpr AttentionShape kShape = {2, 2, 8, 1};
  const auto linear = [](const mx::array& weight) {
    return Linear{Matrix{.weight = weight}, std::nullopt};
  };
  const auto random = [] {
    return mx::random::normal({kHidden, kHidden}, mx::float32);
  };
  const mx::array x = mx::random::normal({1, kHidden}, mx::float32);
  AttentionWeights weights{
      .norm = std::nullopt,
      .q = linear(random()),
      .k = linear(random()),
      .v = linear(random()),
      .o = linear(random())};
  const auto run = [&](bool has_norm, bool is_scaled) {
    AttentionWeights own = weights;
    if (has_norm) {
      own.v_norm = mx::ones({8}, mx::float32);
    }
    if (is_scaled) {
      const mx::array factors = mx::concatenate(
          {mx::full({8, 1}, 3.0f), mx::ones({8, 1}, mx::float32)}, 0);
      own.v = linear(mx::multiply(own.v->matrix.weight, factors));
    }
    std::vector<std::unique_ptr<KvCache>> caches;
    caches.push_back(make_kv_cache(kShape, mx::float32, false));
    KvState kv(std::move(caches));
    const std::vector<TokenId> ids(1);
    const Row row{ids, &kv, Logits::kAll};
    Step step({&row, 1}, nullptr);
    return attend_and_add(step, x, own, kShape, nullptr, 1e-6f, 0);
  };
  const auto difference = [&](bool has_norm) {
    return mx::max(
               mx::abs(mx::subtract(run(has_norm, true), run(has_norm, false))))
        .item<float>();
  };
  EXPECT_LT(difference(true), 1e-4f);
  EXPECT_GT(difference(false), 0.1f);
}

} // namespace
} // namespace ingle
