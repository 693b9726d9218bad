#include "model/families/llama.h"

#include <cmath>

#include "model/ops.h"
#include "model/run_mlx.h"

namespace ingle {
namespace {

struct Weights {
  Matrix embedding; // [V, D]
  std::vector<LayerWeights> layers;
  mx::array norm; // [D]
  std::optional<Matrix> head; // [V, D]; none: tied to the embedding
};

class Llama final : public Model {
 public:
  Llama(
      ModelConfig config,
      Weights weights,
      std::unique_ptr<CpuKernels> kernels)
      : config_(std::move(config)),
        weights_(std::move(weights)),
        kernels_(std::move(kernels)),
        rope_(config_.rope, config_.head_dim),
        attention_{
            config_.num_attention_heads,
            config_.num_key_value_heads,
            config_.head_dim,
            1 / std::sqrt(static_cast<float>(config_.head_dim))} {}

  const ModelConfig& config() const override {
    return config_;
  }

  KvState make_kv() const override {
    std::vector<std::unique_ptr<KvCache>> caches;
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
      caches.push_back(
          make_kv_cache(attention_, weights_.norm.dtype(), kernels_.get()));
    }
    return KvState(std::move(caches));
  }

  std::optional<mx::array> forward(std::span<const Row> rows) const override {
    Step step(rows, kernels_.get());
    const float eps = config_.rms_norm_eps;
    mx::array x = embed(step, weights_.embedding);
    const size_t last = weights_.layers.size() - 1;
    for (size_t i = 0; i < last; ++i) {
      const LayerWeights& layer = weights_.layers[i];
      x = decoder_layer(step, x, layer, attention_, rope_, eps, i);
    }
    const LayerWeights& layer = weights_.layers[last];
    x = attend_and_add(step, x, layer.attention, attention_, rope_, eps, last);
    const std::optional<mx::array> wanted = take_wanted(step, x);
    if (!wanted) {
      return std::nullopt;
    }
    x = mlp_and_add(step, *wanted, layer.mlp, eps);
    const Matrix& head = weights_.head ? *weights_.head : weights_.embedding;
    return norm_and_head(step, x, weights_.norm, head, eps);
  }

  CpuKernels* kernels() const override {
    return kernels_.get();
  }

 private:
  ModelConfig config_;
  Weights weights_;
  std::unique_ptr<CpuKernels> kernels_;
  Rope rope_;
  AttentionShape attention_;
};

Result<AttentionWeights> take_attention(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const int hidden = config.hidden_size;
  const int q_width = config.num_attention_heads * config.head_dim;
  const int kv_width = config.num_key_value_heads * config.head_dim;
  const bool bias = config.attention_bias;
  const std::string path = layer + ".self_attn.";
  INGLE_ASSIGN_OR_RETURN(
      auto norm, weights.take(layer + ".input_layernorm.weight", {hidden}));
  INGLE_ASSIGN_OR_RETURN(
      auto q, weights.take_linear(path + "q_proj", hidden, q_width, bias));
  INGLE_ASSIGN_OR_RETURN(
      auto k, weights.take_linear(path + "k_proj", hidden, kv_width, bias));
  INGLE_ASSIGN_OR_RETURN(
      auto v, weights.take_linear(path + "v_proj", hidden, kv_width, bias));
  INGLE_ASSIGN_OR_RETURN(
      auto o, weights.take_linear(path + "o_proj", q_width, hidden, bias));
  weights.drop(path + "rotary_emb.inv_freq"); // older files store the table
  return AttentionWeights{
      std::move(norm), std::move(q), std::move(k), std::move(v), std::move(o)};
}

Result<MlpWeights> take_mlp(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const int hidden = config.hidden_size;
  const int inner = config.intermediate_size;
  const bool bias = config.mlp_bias;
  const std::string path = layer + ".mlp.";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      weights.take(layer + ".post_attention_layernorm.weight", {hidden}));
  INGLE_ASSIGN_OR_RETURN(
      auto gate, weights.take_linear(path + "gate_proj", hidden, inner, bias));
  INGLE_ASSIGN_OR_RETURN(
      auto up, weights.take_linear(path + "up_proj", hidden, inner, bias));
  INGLE_ASSIGN_OR_RETURN(
      auto down, weights.take_linear(path + "down_proj", inner, hidden, bias));
  return MlpWeights{
      std::move(norm), std::move(gate), std::move(up), std::move(down)};
}

Result<std::optional<Matrix>> take_head(
    const ModelConfig& config,
    WeightSource& weights) {
  if (config.tie_word_embeddings.value_or(!weights.has("lm_head.weight"))) {
    // Some files store the embedding twice.
    for (const char* part : {"weight", "scales", "biases"}) {
      weights.drop(std::string("lm_head.") + part);
    }
    return std::optional<Matrix>();
  }
  INGLE_ASSIGN_OR_RETURN(
      auto head,
      weights.take_matrix("lm_head", config.vocab_size, config.hidden_size));
  return std::optional<Matrix>(std::move(head));
}

} // namespace

Result<std::unique_ptr<const Model>> load_llama(
    const ModelConfig& config,
    WeightSource& weights,
    std::unique_ptr<CpuKernels> kernels) {
  INGLE_ASSIGN_OR_RETURN(
      auto embedding,
      weights.take_matrix(
          "model.embed_tokens", config.vocab_size, config.hidden_size));
  std::vector<LayerWeights> layers;
  for (int i = 0; i < config.num_hidden_layers; ++i) {
    const std::string path = "model.layers." + std::to_string(i);
    INGLE_ASSIGN_OR_RETURN(
        auto attention, take_attention(config, weights, path));
    INGLE_ASSIGN_OR_RETURN(auto mlp, take_mlp(config, weights, path));
    layers.push_back({std::move(attention), std::move(mlp)});
  }
  INGLE_ASSIGN_OR_RETURN(
      auto norm, weights.take("model.norm.weight", {config.hidden_size}));
  INGLE_ASSIGN_OR_RETURN(auto head, take_head(config, weights));
  return run_mlx("load", [&] {
    return std::unique_ptr<const Model>(std::make_unique<Llama>(
        config,
        Weights{
            std::move(embedding),
            std::move(layers),
            std::move(norm),
            std::move(head)},
        std::move(kernels)));
  });
}

} // namespace ingle
