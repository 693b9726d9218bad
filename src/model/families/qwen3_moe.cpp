// Qwen 3 with mixtures of experts: the layers of qwen3, but in place of the MLP
// many of them, of which a router picks a few for each token. Some layers may
// have the MLP.
#include <variant>

#include "model/families/families.h"
#include "model/make_kv_state.h"
#include "model/moe.h"
#include "model/run_mlx.h"

namespace ingle {
namespace {

constexpr int kMaxExperts = 1 << 12;

// ---- The model

struct Layer {
  AttentionWeights attention;
  AttentionShape shape;
  std::variant<MlpWeights, MoeWeights> second_half;
};

struct Weights {
  Matrix embedding; // [V, D]
  std::vector<Layer> layers;
  mx::array norm; // [D]
  std::optional<Matrix> head; // [V, D]; none: tied to the embedding
};

class Qwen3Moe final : public Model {
 public:
  Qwen3Moe(
      ModelConfig config,
      KvQuantizations kv,
      Weights weights,
      std::unique_ptr<CpuKernels> kernels)
      : config_(std::move(config)),
        kv_(std::move(kv)),
        weights_(std::move(weights)),
        kernels_(std::move(kernels)),
        rope_(config_.ropes.front(), config_.head_dim) {}

  const ModelConfig& config() const override {
    return config_;
  }

  KvState make_kv() const override {
    return make_kv_state(
        config_, kv_, weights_.norm.dtype(), kernels_ != nullptr);
  }

  std::optional<mx::array> forward(std::span<const Row> rows) const override {
    Step step(rows, kernels());
    const float eps = config_.rms_norm_eps;
    mx::array x = embed(step, weights_.embedding);
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
      const Layer& layer = weights_.layers[i];
      x = attend_and_add(step, x, layer.attention, layer.shape, &rope_, eps, i);
      if (i + 1 == weights_.layers.size()) {
        const std::optional<mx::array> wanted = take_wanted(step, x);
        if (!wanted) {
          return std::nullopt;
        }
        x = *wanted;
      }
      const auto* moe = std::get_if<MoeWeights>(&layer.second_half);
      x = moe != nullptr
          ? moe_and_add(step, x, *moe, eps)
          : mlp_and_add(step, x, std::get<MlpWeights>(layer.second_half), eps);
    }
    const Matrix& head = weights_.head ? *weights_.head : weights_.embedding;
    return norm_and_head(step, x, weights_.norm, head, eps);
  }

  CpuKernels* kernels() const override {
    return kernels_.get();
  }

 private:
  ModelConfig config_;
  KvQuantizations kv_;
  Weights weights_;
  std::unique_ptr<CpuKernels> kernels_;
  Rope rope_;
};

// ---- Its weights

Result<MoeWeights> take_moe(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const auto& [count, per_token, inner, renormalises] = config.experts;
  const int hidden = config.hidden_size;
  const std::string path = layer + ".mlp";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(config, weights, layer + ".post_attention_layernorm", hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto router, weights.take_linear(path + ".gate", hidden, count, false));
  INGLE_ASSIGN_OR_RETURN(
      auto gate, weights.take_experts(path, "gate_proj", count, inner, hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto up, weights.take_experts(path, "up_proj", count, inner, hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto down, weights.take_experts(path, "down_proj", count, hidden, inner));
  return MoeWeights{
      std::move(norm),
      std::move(router),
      std::move(gate),
      std::move(up),
      std::move(down),
      per_token,
      renormalises};
}

Result<Layer> take_layer(
    const ModelConfig& config,
    const LayerConfig& layer,
    const std::optional<KvQuantization>& kv,
    WeightSource& weights,
    const std::string& path) {
  INGLE_ASSIGN_OR_RETURN(auto attention, take_attention(config, weights, path));
  const AttentionShape shape = attention_shape(config, layer, kv);
  if (layer.has_experts) {
    INGLE_ASSIGN_OR_RETURN(auto moe, take_moe(config, weights, path));
    return Layer{std::move(attention), shape, std::move(moe)};
  }
  INGLE_ASSIGN_OR_RETURN(auto mlp, take_mlp(config, weights, path));
  return Layer{std::move(attention), shape, std::move(mlp)};
}

// ---- Its config

Status read_experts(
    FieldReader& fields,
    const std::string& origin,
    ExpertsConfig& experts) {
  experts.count = fields.size("num_experts", kMaxExperts);
  experts.per_token = fields.size("num_experts_per_tok", kMaxExperts);
  experts.intermediate_size = fields.size("moe_intermediate_size");
  experts.renormalises = fields.optional_bool("norm_topk_prob").value_or(false);
  INGLE_RETURN_IF_ERROR(fields.status());
  if (experts.per_token > experts.count) {
    return Status::corruption(
        origin + ": num_experts_per_tok (" + std::to_string(experts.per_token) +
        ") is over num_experts (" + std::to_string(experts.count) + ")");
  }
  return Status::ok();
}

// Every `step`-th layer has experts, but for those that the file lists.
Status read_layers(
    FieldReader& fields,
    const std::string& origin,
    std::vector<LayerConfig>& layers) {
  const auto step = static_cast<size_t>(
      fields.optional_size("decoder_sparse_step").value_or(1));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].has_experts = (i + 1) % step == 0;
  }
  const nlohmann::json* without = fields.find("mlp_only_layers");
  if (without == nullptr) {
    return Status::ok();
  }
  const Status bad = Status::corruption(
      origin + ": mlp_only_layers has to be a list of layers, from 0 to " +
      std::to_string(layers.size() - 1));
  if (!without->is_array()) {
    return bad;
  }
  for (const nlohmann::json& layer : *without) {
    if (!layer.is_number_unsigned() || layer.get<uint64_t>() >= layers.size()) {
      return bad;
    }
    layers[layer.get<size_t>()].has_experts = false;
  }
  return Status::ok();
}

} // namespace

Status read_qwen3_moe(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_RETURN_IF_ERROR(read_qwen3(fields, origin, config));
  if (config.activation != Activation::kSilu) {
    return Status::unsupported(
        origin + ": hidden_act other than silu is not supported for " +
        config.model_type);
  }
  if (fields.optional_bool("attention_bias").value_or(false)) {
    return Status::unsupported(
        origin +
        ": attention_bias: attention with biases is not supported "
        "for " +
        config.model_type);
  }
  config.wide_modules = {"mlp.gate"}; // a coarse router picks others
  INGLE_RETURN_IF_ERROR(read_experts(fields, origin, config.experts));
  return read_layers(fields, origin, config.layers);
}

Result<std::unique_ptr<const Model>> load_qwen3_moe(
    const ModelConfig& config,
    const KvQuantizations& kv,
    WeightSource& weights,
    std::unique_ptr<CpuKernels> kernels) {
  INGLE_ASSIGN_OR_RETURN(
      auto embedding,
      weights.take_matrix(
          "model.embed_tokens", config.vocab_size, config.hidden_size));
  std::vector<Layer> layers;
  for (const LayerConfig& layer : config.layers) {
    const size_t i = layers.size();
    INGLE_ASSIGN_OR_RETURN(
        auto taken,
        take_layer(
            config,
            layer,
            kv[i],
            weights,
            "model.layers." + std::to_string(i)));
    layers.push_back(std::move(taken));
  }
  INGLE_ASSIGN_OR_RETURN(
      auto norm, take_norm(config, weights, "model.norm", config.hidden_size));
  INGLE_ASSIGN_OR_RETURN(auto head, take_head(config, weights));
  return run_mlx("load", [&] {
    return std::unique_ptr<const Model>(std::make_unique<Qwen3Moe>(
        config,
        kv,
        Weights{
            std::move(embedding),
            std::move(layers),
            std::move(norm),
            std::move(head)},
        std::move(kernels)));
  });
}

} // namespace ingle
