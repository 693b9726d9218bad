// Whole layers: against plain f64, and the same bits however the work is cut.
#include "kernels/layer.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/testing/bounds.h"
#include "kernels/testing/random_weights.h"

namespace ingle {
namespace {

constexpr int kHidden = 96;
constexpr int kInner = 160;
constexpr int kVocab = 200;

struct LayerConfig {
  int heads = 6;
  int kv_heads = 2;
  int head_dim = 32;
  int window = 0;
  float soft_cap = 0;
  int bits = 4; // of all matrices but those below
  int odd_bits = 4; // of v, down
  bool has_bias = false;
  int kv_bits = 16;
  int up_bits = -1; // other than the gate's; -1: as it
  float sharpness = 1; // of the softmax: how much of an error in keys it shows
  bool has_gates = false;
  bool has_layer_norm = false;
  bool is_plain = false; // the MLP, with the precise gelu
  bool has_sinks = false;
  bool has_value_norm = false;
  bool values_are_keys = false;
  bool is_sharer = false; // of keys and values that another layer has made

  int query_stride() const {
    return has_gates ? 2 * head_dim : head_dim;
  }
};

// The weights of a layer, and how it is computed in f64.
class Layer {
 public:
  explicit Layer(const LayerConfig& c) : config(c) {
    const int q_width = c.heads * c.head_dim;
    const int kv_width = c.kv_heads * c.head_dim;
    q = matrix(c.heads * c.query_stride(), kHidden, c.bits);
    k = matrix(kv_width, kHidden, c.bits);
    v = matrix(kv_width, kHidden, c.odd_bits);
    o = matrix(kHidden, q_width, c.bits);
    gate = matrix(kInner, kHidden, c.bits);
    up = matrix(kInner, kHidden, c.up_bits < 0 ? c.bits : c.up_bits);
    down = matrix(kHidden, kInner, c.odd_bits);
    norm = random_floats(random, kHidden);
    bias = random_floats(random, 2 * q_width + kInner);
    norm_bias = random_floats(random, kHidden);
    sinks = random_floats(random, c.heads);
    sinks[0] = 40; // above all scores: little is left of them
    sinks[1] = -40;
    value_norm = random_floats(random, c.head_dim);
  }

  AttentionView attention(
      const std::vector<float>& cosines,
      const std::vector<float>& sines) const {
    return {
        .norm = first_norm(),
        .q = view(q),
        .k = config.is_sharer ? LinearView{} : view(k),
        .v =
            config.is_sharer || config.values_are_keys ? LinearView{} : view(v),
        .o = view(o),
        .v_norm = config.has_value_norm ? NormView{value_norm.data(), 1e-5f}
                                        : NormView{},
        .has_gates = config.has_gates,
        .sinks = config.has_sinks ? sinks.data() : nullptr,
        .heads = config.heads,
        .kv_heads = config.kv_heads,
        .head_dim = config.head_dim,
        .kv_bits = config.kv_bits,
        .kv_group_size = 32,
        .scale =
            config.sharpness / std::sqrt(static_cast<float>(config.head_dim)),
        .soft_cap = config.soft_cap,
        .window = config.window,
        .rope_dims = config.head_dim,
        .cosines = cosines.data(),
        .sines = sines.data()};
  }
  MlpView mlp() const {
    return {
        .norm = first_norm(),
        .gate = view(gate),
        .up = config.is_plain ? LinearView{} : view(up),
        .down = view(down),
        .activation = config.is_plain ? Activation::kGelu : Activation::kSilu};
  }

  LayerConfig config;
  std::mt19937 random{11};
  Arena arena;
  RandomMatrix q, k, v, o, gate, up, down;
  std::vector<float> norm;
  std::vector<float> bias;
  std::vector<float> norm_bias;
  std::vector<float> sinks;
  std::vector<float> value_norm;

 private:
  NormView first_norm() const {
    return {
        norm.data(), 1e-5f, config.has_layer_norm ? norm_bias.data() : nullptr};
  }
  RandomMatrix matrix(int rows, int columns, int bits) {
    return random_matrix(
        random, arena, rows, columns, bits, 32, FloatType::kF16);
  }
  LinearView view(const RandomMatrix& m) const {
    return {&m.packed, config.has_bias ? bias.data() : nullptr};
  }
};

// A sequence: its tokens' inputs, and its K/V.
struct Sequence {
  Sequence(const Layer& layer, int tokens, int seed)
      : blocks(
            static_cast<size_t>(
                (tokens + kBlockPositions - 1) / kBlockPositions *
                layer.config.kv_heads) *
            KvBlockShape{layer.config.head_dim, layer.config.kv_bits, 32}
                .bytes()) {
    std::mt19937 random(static_cast<unsigned>(seed));
    x = random_floats(random, tokens * kHidden);
  }
  int size() const {
    return static_cast<int>(x.size()) / kHidden;
  }

  std::vector<float> x;
  PageBuffer blocks;
};

struct Piece {
  Sequence* sequence = nullptr;
  int begin = 0;
  int end = 0;
};

// One step over the pieces; gives attend_and_add()'s result for each.
std::vector<std::vector<float>> step(
    KernelContext& context,
    const Layer& layer,
    const std::vector<Piece>& pieces) {
  std::vector<AttentionRow> rows;
  std::vector<float> x;
  std::vector<float> cosines;
  std::vector<float> sines;
  for (const Piece& piece : pieces) {
    rows.push_back(
        {piece.end - piece.begin, piece.begin, piece.sequence->blocks.data()});
    const auto& from = piece.sequence->x;
    x.insert(
        x.end(),
        from.begin() + piece.begin * kHidden,
        from.begin() + piece.end * kHidden);
    for (int p = piece.begin; p < piece.end; ++p) {
      for (int i = 0; i < layer.config.head_dim / 2; ++i) {
        const auto angle =
            static_cast<float>(p) * std::pow(0.5f, static_cast<float>(i));
        cosines.push_back(std::cos(angle));
        sines.push_back(std::sin(angle));
      }
    }
  }
  std::vector<float> out(x.size());
  const ThreadPool::Step awake(context.pool);
  attend_and_add(
      context, layer.attention(cosines, sines), rows, x.data(), out.data());
  std::vector<std::vector<float>> results;
  auto at = out.begin();
  for (const Piece& piece : pieces) {
    const auto size = (piece.end - piece.begin) * kHidden;
    results.emplace_back(at, at + size);
    at += size;
  }
  return results;
}

// The sequence in pieces of `size` tokens.
std::vector<float> in_pieces(
    KernelContext& context,
    const Layer& layer,
    int tokens,
    int size,
    int seed) {
  Sequence sequence(layer, tokens, seed);
  std::vector<float> out;
  for (int begin = 0; begin < tokens; begin += size) {
    const int end = std::min(tokens, begin + size);
    const auto part = step(context, layer, {{&sequence, begin, end}}).front();
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

std::vector<double>
times(const std::vector<double>& x, const RandomMatrix& m, const float* bias) {
  std::vector<double> y(static_cast<size_t>(m.packed.rows));
  for (size_t n = 0; n < y.size(); ++n) {
    y[n] = bias == nullptr ? 0 : bias[n];
    for (size_t i = 0; i < x.size(); ++i) {
      y[n] += x[i] * m.values[n * x.size() + i];
    }
  }
  return y;
}

std::vector<double> normed(const Layer& layer, const float* x) {
  const bool has_layer_norm = layer.config.has_layer_norm;
  double mean = 0;
  for (int i = 0; has_layer_norm && i < kHidden; ++i) {
    mean += static_cast<double>(x[i]) / kHidden;
  }
  double squares = 0;
  for (int i = 0; i < kHidden; ++i) {
    squares += (x[i] - mean) * (x[i] - mean);
  }
  std::vector<double> out;
  for (size_t i = 0; i < kHidden; ++i) {
    out.push_back(
        (x[i] - mean) / std::sqrt(squares / kHidden + 1e-5) * layer.norm[i] +
        (has_layer_norm ? layer.norm_bias[i] : 0));
  }
  return out;
}

void rotate(double* head, int dim, int position) {
  for (int i = 0; i < dim / 2; ++i) {
    const double angle = position * std::pow(0.5, i);
    const double a = head[i];
    const double b = head[i + dim / 2];
    head[i] = a * std::cos(angle) - b * std::sin(angle);
    head[i + dim / 2] = a * std::sin(angle) + b * std::cos(angle);
  }
}

// A token's values, of its normed input, in f64.
std::vector<double>
values_of(const Layer& layer, const std::vector<double>& n, const float* bias) {
  const LayerConfig& c = layer.config;
  auto values = times(n, c.values_are_keys ? layer.k : layer.v, bias);
  const auto dim = static_cast<size_t>(c.head_dim);
  for (size_t at = 0; c.has_value_norm && at < values.size(); at += dim) {
    double squares = 0;
    for (size_t i = 0; i < dim; ++i) {
      squares += values[at + i] * values[at + i];
    }
    for (size_t i = 0; i < dim; ++i) {
      values[at + i] *=
          layer.value_norm[i] / std::sqrt(squares / c.head_dim + 1e-5);
    }
  }
  return values;
}

// attend_and_add() of a whole sequence in f64.
std::vector<double> exact(const Layer& layer, const Sequence& sequence) {
  const LayerConfig& c = layer.config;
  const float* bias = c.has_bias ? layer.bias.data() : nullptr;
  std::vector<std::vector<double>> keys;
  std::vector<std::vector<double>> values;
  std::vector<double> out;
  for (int p = 0; p < sequence.size(); ++p) {
    const float* x = sequence.x.data() + p * kHidden;
    const auto n = normed(layer, x);
    auto q = times(n, layer.q, bias);
    keys.push_back(times(n, layer.k, bias));
    values.push_back(values_of(layer, n, bias));
    for (int h = 0; h < c.heads; ++h) {
      rotate(q.data() + h * c.query_stride(), c.head_dim, p);
    }
    for (int h = 0; h < c.kv_heads; ++h) {
      rotate(keys.back().data() + h * c.head_dim, c.head_dim, p);
    }
    std::vector<double> attended(static_cast<size_t>(c.heads * c.head_dim));
    for (int h = 0; h < c.heads; ++h) {
      const int kv = h / (c.heads / c.kv_heads) * c.head_dim;
      double total = 0;
      std::vector<double> scores;
      const int first = c.window == 0 ? 0 : std::max(0, p - c.window + 1);
      for (int t = first; t <= p; ++t) {
        const auto at = static_cast<size_t>(t);
        double score = 0;
        for (int i = 0; i < c.head_dim; ++i) {
          score += q[static_cast<size_t>(h * c.query_stride() + i)] *
              keys[at][static_cast<size_t>(kv + i)];
        }
        score *= c.sharpness / std::sqrt(static_cast<double>(c.head_dim));
        if (c.soft_cap > 0) {
          score = c.soft_cap * std::tanh(score / c.soft_cap);
        }
        scores.push_back(score);
      }
      double max = *std::max_element(scores.begin(), scores.end());
      if (c.has_sinks) {
        const double sink = layer.sinks[static_cast<size_t>(h)];
        max = std::max(max, sink);
        total = std::exp(sink - max);
      }
      for (int t = first; t <= p; ++t) {
        const auto at = static_cast<size_t>(t);
        const double score = scores[static_cast<size_t>(t - first)];
        const double weight = std::exp(score - max);
        total += weight;
        for (int i = 0; i < c.head_dim; ++i) {
          attended[static_cast<size_t>(h * c.head_dim + i)] +=
              weight * values[at][static_cast<size_t>(kv + i)];
        }
      }
      for (int i = 0; i < c.head_dim; ++i) {
        const auto at = static_cast<size_t>(h * c.head_dim + i);
        const int gate = h * c.query_stride() + c.head_dim + i;
        attended[at] /= c.has_gates
            ? total * (1 + std::exp(-q[static_cast<size_t>(gate)]))
            : total;
      }
    }
    const auto y = times(attended, layer.o, bias);
    for (int i = 0; i < kHidden; ++i) {
      out.push_back(x[i] + y[static_cast<size_t>(i)]);
    }
  }
  return out;
}

// sqrt(mean((a - b)^2) / mean(b^2))
double relative_error(
    const std::vector<float>& a,
    const std::vector<double>& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

class LayerTest : public testing::TestWithParam<Isa> {
 protected:
  KernelContext context(ThreadPool& pool) const {
    return {kernel_set(GetParam()), pool, Inputs::kTwoPlanes};
  }
};

std::vector<LayerConfig> layer_configs() {
  return {
      {},
      {.heads = 4, .kv_heads = 4, .head_dim = 24, .has_bias = true},
      {.heads = 8, .kv_heads = 1, .window = 20},
      {.soft_cap = 5},
      {.bits = 0, .odd_bits = 0},
      {.bits = 4, .odd_bits = 0},
      {.bits = 3, .odd_bits = 8},
      {.has_bias = true, .up_bits = 8},
      {.up_bits = 0},
      {.kv_bits = 8, .sharpness = 0.1f},
      {.has_bias = true, .has_layer_norm = true, .is_plain = true},
      {.bits = 0, .odd_bits = 4, .is_plain = true},
      {.heads = 8,
       .head_dim = 40,
       .window = 20,
       .kv_bits = 4,
       .sharpness = 0.1f},
      {.heads = 4, .head_dim = 40, .bits = 0, .has_gates = true},
      {.has_bias = true, .has_gates = true},
      {.heads = 8, .has_bias = true, .has_sinks = true},
      {.window = 20, .soft_cap = 5, .has_sinks = true},
      {.kv_bits = 4, .sharpness = 0.1f, .has_sinks = true},
      {.head_dim = 64, .has_value_norm = true},
      {.kv_heads = 1,
       .head_dim = 512,
       .has_bias = true,
       .sharpness = 0.1f,
       .has_value_norm = true,
       .values_are_keys = true}};
}

TEST_P(LayerTest, AttentionIsNearTheExact) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const LayerConfig& config : layer_configs()) {
    const Layer layer(config);
    Sequence sequence(layer, 70, 3);
    const auto out = step(context, layer, {{&sequence, 0, 70}}).front();
    EXPECT_LT(
        relative_error(out, exact(layer, sequence)),
        attention_layer_bound(config.kv_bits));
  }
}

TEST_P(LayerTest, AnyCutOfAPromptGivesTheSameBits) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const LayerConfig& config : layer_configs()) {
    const Layer layer(config);
    const auto whole = in_pieces(context, layer, 300, 300, 5);
    for (const int size : {1, 3, 64, 257}) {
      ASSERT_EQ(in_pieces(context, layer, 300, size, 5), whole) << size;
    }
  }
}

// Whose keys and values are another's: here its own, from before.
TEST_P(LayerTest, LayerWithoutKeysAttendsToThoseThatAreThere) {
  constexpr int kTokens = 300;
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const LayerConfig& config : layer_configs()) {
    Layer layer(config);
    Sequence sequence(layer, kTokens, 5);
    const auto whole = step(context, layer, {{&sequence, 0, kTokens}}).front();
    layer.config.is_sharer = true;
    for (const int begin : {0, kTokens - 40, kTokens - 1}) {
      const auto out =
          step(context, layer, {{&sequence, begin, kTokens}}).front();
      ASSERT_THAT(
          out,
          testing::ElementsAreArray(
              whole.begin() + begin * kHidden, whole.end()));
    }
  }
}

// So many blocks that threads merge them together.
TEST_P(LayerTest, FarTokensGetTheSameBitsAloneAndInAPrompt) {
  constexpr int kTokens = 1100;
  const Layer layer({});
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    auto context = this->context(pool);
    Sequence whole(layer, kTokens, 7);
    const auto expected = step(context, layer, {{&whole, 0, kTokens}}).front();
    Sequence cut(layer, kTokens, 7);
    Sequence beside(layer, 40, 8);
    step(context, layer, {{&cut, 0, kTokens - 4}});
    for (int t = kTokens - 4; t < kTokens; t += 2) {
      const auto out =
          step(context, layer, {{&beside, 0, 3}, {&cut, t, t + 2}}).back();
      ASSERT_THAT(
          out,
          testing::ElementsAreArray(
              expected.begin() + t * kHidden,
              expected.begin() + (t + 2) * kHidden));
    }
  }
}

TEST_P(LayerTest, AnyNumberOfThreadsGivesTheSameBits) {
  const Layer layer({});
  ThreadPool one(1);
  auto alone = context(one);
  for (const int threads : {2, 3, 5}) {
    ThreadPool pool(threads);
    auto together = context(pool);
    for (const int size : {1, 40}) {
      ASSERT_EQ(
          in_pieces(together, layer, 40, size, 5),
          in_pieces(alone, layer, 40, size, 5));
    }
  }
}

TEST_P(LayerTest, RowsGetTheSameBitsWhateverIsBesideThem) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const LayerConfig& config : layer_configs()) {
    const Layer layer(config);
    // Three rows: a prompt's piece, one token, and one token far on.
    const std::vector<int> lengths = {90, 30, 270};
    const std::vector<int> last = {40, 1, 1};
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<Piece> pieces;
    std::vector<std::vector<float>> alone;
    for (size_t i = 0; i < lengths.size(); ++i) {
      for (const bool is_alone : {true, false}) {
        sequences.push_back(
            std::make_unique<Sequence>(layer, lengths[i], static_cast<int>(i)));
        Sequence& sequence = *sequences.back();
        const int cut = lengths[i] - last[i];
        step(context, layer, {{&sequence, 0, cut}});
        const Piece piece{&sequence, cut, lengths[i]};
        if (is_alone) {
          alone.push_back(step(context, layer, {piece}).front());
        } else {
          pieces.push_back(piece);
        }
      }
    }
    EXPECT_EQ(step(context, layer, pieces), alone);
  }
}

TEST_P(LayerTest, LayerIsItsAttentionAndThenItsMlp) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const LayerConfig& config : layer_configs()) {
    const Layer layer(config);
    for (const int tokens : {1, 40}) {
      const auto floats = static_cast<size_t>(tokens * kHidden);
      const auto angles = static_cast<size_t>(tokens * config.head_dim / 2);
      const std::vector<float> cosines(angles, 0.6f);
      const std::vector<float> sines(angles, 0.8f);
      const AttentionView attention = layer.attention(cosines, sines);
      Sequence one(layer, tokens, 1);
      std::vector<float> middle(floats);
      std::vector<float> expected(floats);
      const AttentionRow row{tokens, 0, one.blocks.data()};
      attend_and_add(
          context, attention, {&row, 1}, one.x.data(), middle.data());
      mlp_and_add(context, layer.mlp(), tokens, middle.data(), expected.data());

      Sequence other(layer, tokens, 1);
      std::vector<float> out(floats);
      const AttentionRow same{tokens, 0, other.blocks.data()};
      decoder_layer(
          context,
          attention,
          layer.mlp(),
          {&same, 1},
          other.x.data(),
          out.data());
      ASSERT_EQ(out, expected);
    }
  }
}

TEST_P(LayerTest, MlpIsNearTheExactAndTheSameForAnyTokens) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  for (const LayerConfig& config : layer_configs()) {
    const Layer layer(config);
    const Sequence sequence(layer, 23, 9);
    std::vector<float> all(sequence.x.size());
    mlp_and_add(context, layer.mlp(), 23, sequence.x.data(), all.data());
    const float* bias = config.has_bias ? layer.bias.data() : nullptr;
    std::vector<double> expected;
    for (int t = 0; t < 23; ++t) {
      const float* x = sequence.x.data() + t * kHidden;
      const auto n = normed(layer, x);
      auto inner = times(n, layer.gate, bias);
      const auto up = times(n, layer.up, bias);
      for (size_t i = 0; i < inner.size(); ++i) {
        inner[i] = config.is_plain
            ? inner[i] * 0.5 * std::erfc(-inner[i] / std::sqrt(2.0))
            : inner[i] / (1 + std::exp(-inner[i])) * up[i];
      }
      const auto y = times(inner, layer.down, bias);
      for (int i = 0; i < kHidden; ++i) {
        expected.push_back(x[i] + y[static_cast<size_t>(i)]);
      }
      std::vector<float> alone(kHidden);
      mlp_and_add(context, layer.mlp(), 1, x, alone.data());
      ASSERT_THAT(
          alone,
          testing::ElementsAreArray(
              all.begin() + t * kHidden, all.begin() + (t + 1) * kHidden));
    }
    EXPECT_LT(relative_error(all, expected), kMlpLayerBound);
  }
}

TEST_P(LayerTest, HeadIsThatOfTheNormedTokens) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  Layer layer({});
  const RandomMatrix head = random_matrix(
      layer.random, layer.arena, kVocab, kHidden, 8, 32, FloatType::kF16);
  const int tokens = 9;
  const Sequence sequence(layer, tokens, 1);
  for (const float cap : {0.0f, 100.0f}) { // logits reach about 30
    std::vector<float> out(tokens * kVocab);
    norm_and_head(
        context,
        {layer.norm.data(), 1e-5f},
        {&head.packed, nullptr},
        cap,
        tokens,
        sequence.x.data(),
        out.data());
    std::vector<double> expected;
    for (int t = 0; t < tokens; ++t) {
      for (const double y : times(
               normed(layer, sequence.x.data() + t * kHidden), head, nullptr)) {
        expected.push_back(cap > 0 ? cap * std::tanh(y / cap) : y);
      }
    }
    EXPECT_LT(relative_error(out, expected), 1e-4);
  }
}

TEST_P(LayerTest, HeadIsTheSameWhereLayersHaveOnePlane) {
  ThreadPool pool(2);
  Layer layer({});
  const RandomMatrix head = random_matrix(
      layer.random, layer.arena, kVocab, kHidden, 8, 32, FloatType::kF16);
  const Sequence sequence(layer, 1, 1);
  std::vector<std::vector<float>> logits;
  for (const Inputs planes : {Inputs::kTwoPlanes, Inputs::kOnePlane}) {
    KernelContext context{kernel_set(GetParam()), pool, planes};
    logits.emplace_back(kVocab);
    norm_and_head(
        context,
        {layer.norm.data(), 1e-5f},
        {&head.packed, nullptr},
        0,
        1,
        sequence.x.data(),
        logits.back().data());
  }
  EXPECT_EQ(logits[0], logits[1]);
}

TEST_P(LayerTest, EmbeddingIsRowsOfTheTable) {
  ThreadPool pool(2);
  auto context = this->context(pool);
  Layer layer({});
  const RandomMatrix table = random_matrix(
      layer.random, layer.arena, kVocab, kHidden, 8, 32, FloatType::kF16);
  const std::vector<int32_t> ids = {199, 0, 17};
  std::vector<float> out(ids.size() * kHidden);
  embed(context, table.packed, ids, 1, out.data());
  for (size_t t = 0; t < ids.size(); ++t) {
    for (size_t i = 0; i < kHidden; ++i) {
      EXPECT_EQ(
          out[t * kHidden + i],
          table.values[static_cast<size_t>(ids[t]) * kHidden + i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    LayerTest,
    testing::ValuesIn(supported_isas()),
    [](const auto& each) { return std::string(to_string(each.param)); });

} // namespace
} // namespace ingle
