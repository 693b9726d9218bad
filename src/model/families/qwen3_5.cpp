// Qwen 3.5: residual layers whose first half is a gated delta net, and
// attention with gated heads in every fourth. What a layer adds is normed
// before its halves; the second one is a gated MLP, as in llama.
#include <variant>

#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "model/families/families.h"
#include "model/gated_delta.h"
#include "model/make_kv_state.h"
#include "model/run_mlx.h"

namespace ingle {
namespace {

// ---- The model

struct Attention {
  AttentionWeights weights;
  AttentionShape shape;
};

struct Layer {
  std::variant<GatedDeltaWeights, Attention> first_half;
  MlpWeights mlp;
};

struct Weights {
  Matrix embedding; // [V, D]
  std::vector<Layer> layers;
  mx::array norm; // [D]
  std::optional<Matrix> head; // [V, D]; none: tied to the embedding
};

class Qwen35 final : public Model {
 public:
  Qwen35(
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
      x = first_half(step, x, i);
      if (i + 1 == weights_.layers.size()) {
        const std::optional<mx::array> wanted = take_wanted(step, x);
        if (!wanted) {
          return std::nullopt;
        }
        x = *wanted;
      }
      x = mlp_and_add(step, x, weights_.layers[i].mlp, eps);
    }
    const Matrix& head = weights_.head ? *weights_.head : weights_.embedding;
    return norm_and_head(step, x, weights_.norm, head, eps);
  }

  CpuKernels* kernels() const override {
    return kernels_.get();
  }

 private:
  mx::array first_half(Step& step, const mx::array& x, size_t i) const {
    const float eps = config_.rms_norm_eps;
    const auto& half = weights_.layers[i].first_half;
    if (const auto* delta = std::get_if<GatedDeltaWeights>(&half)) {
      return gated_delta_and_add(step, x, *delta, config_.gated_delta, eps, i);
    }
    const auto& [weights, shape] = std::get<Attention>(half);
    return attend_and_add(step, x, weights, shape, &rope_, eps, i);
  }

  ModelConfig config_;
  KvQuantizations kv_;
  Weights weights_;
  std::unique_ptr<CpuKernels> kernels_;
  Rope rope_;
};

// ---- Its weights

// Where a file has them: by themselves, or beside those of a part that sees, as
// MLX's converters put them or as they were published.
struct Places {
  std::string model;
  std::string head;
};

Places places_in(const WeightSource& weights) {
  const Places known[] = {
      {"language_model.model", "language_model.lm_head"},
      {"model.language_model", "lm_head"}};
  for (const Places& places : known) {
    if (weights.has(places.model + ".embed_tokens.weight")) {
      return places;
    }
  }
  return {"model", "lm_head"};
}

std::string layer_path(const Places& places, size_t layer) {
  return places.model + ".layers." + std::to_string(layer);
}

// A file as it was published has norms that multiply by 1 + w, and the taps of
// convolutions last; one that MLX's converters wrote has 1 + w and one
// "channel" last.
bool is_as_published(
    const ModelConfig& config,
    const WeightSource& weights,
    const Places& places) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto shape =
        weights.shape_of(layer_path(places, i) + ".linear_attn.conv1d.weight");
    if (shape && !shape->empty()) {
      return shape->back() != 1;
    }
  }
  return false;
}

Result<GatedDeltaWeights> take_gated_delta(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const GatedDeltaShape& shape = config.gated_delta;
  const int hidden = config.hidden_size;
  const int heads = shape.value_heads;
  const std::string path = layer + ".linear_attn.";
  const auto projection = [&](const char* name, int in, int out) {
    return weights.take_linear(path + name, in, out, false);
  };
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(config, weights, layer + ".input_layernorm", hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto qkv, projection("in_proj_qkv", hidden, shape.channels()));
  INGLE_ASSIGN_OR_RETURN(
      auto z, projection("in_proj_z", hidden, shape.value_width()));
  INGLE_ASSIGN_OR_RETURN(auto b, projection("in_proj_b", hidden, heads));
  INGLE_ASSIGN_OR_RETURN(auto a, projection("in_proj_a", hidden, heads));
  INGLE_ASSIGN_OR_RETURN(
      auto out, projection("out_proj", shape.value_width(), hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto conv,
      weights.take(
          path + "conv1d.weight",
          config.norms_add_one ? mx::Shape{shape.channels(), 1, shape.taps}
                               : mx::Shape{shape.channels(), shape.taps, 1}));
  INGLE_ASSIGN_OR_RETURN(auto decay_log, weights.take(path + "A_log", {heads}));
  INGLE_ASSIGN_OR_RETURN(
      auto decay_bias, weights.take(path + "dt_bias", {heads}));
  INGLE_ASSIGN_OR_RETURN(
      auto head_norm, weights.take(path + "norm.weight", {shape.value_dim}));
  INGLE_RETURN_IF_ERROR(run_mlx("load", [&] {
    conv = mx::contiguous(
        mx::transpose(mx::reshape(conv, {shape.channels(), shape.taps})));
    decay_log = mx::exp(mx::astype(decay_log, mx::float32));
    decay_bias = mx::astype(decay_bias, mx::float32);
    mx::eval(conv, decay_log, decay_bias);
  }));
  return GatedDeltaWeights{
      std::move(norm),
      std::move(qkv),
      std::move(z),
      std::move(b),
      std::move(a),
      std::move(out),
      std::move(conv),
      std::move(decay_log),
      std::move(decay_bias),
      std::move(head_norm)};
}

Result<Layer> take_layer(
    const ModelConfig& config,
    const std::optional<KvQuantization>& kv,
    WeightSource& weights,
    const std::string& path,
    const LayerConfig& layer) {
  const auto with_mlp = [&](auto first_half) -> Result<Layer> {
    INGLE_ASSIGN_OR_RETURN(auto mlp, take_mlp(config, weights, path));
    return Layer{std::move(first_half), std::move(mlp)};
  };
  if (layer.is_recurrent) {
    INGLE_ASSIGN_OR_RETURN(auto delta, take_gated_delta(config, weights, path));
    return with_mlp(std::move(delta));
  }
  INGLE_ASSIGN_OR_RETURN(auto attention, take_attention(config, weights, path));
  return with_mlp(
      Attention{std::move(attention), attention_shape(config, layer, kv)});
}

Result<Weights> take_weights(
    const ModelConfig& config,
    const KvQuantizations& kv,
    WeightSource& weights,
    const Places& places) {
  INGLE_ASSIGN_OR_RETURN(
      auto embedding,
      weights.take_matrix(
          places.model + ".embed_tokens",
          config.vocab_size,
          config.hidden_size));
  std::vector<Layer> layers;
  for (const LayerConfig& layer : config.layers) {
    INGLE_ASSIGN_OR_RETURN(
        auto taken,
        take_layer(
            config,
            kv[layers.size()],
            weights,
            layer_path(places, layers.size()),
            layer));
    layers.push_back(std::move(taken));
  }
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(config, weights, places.model + ".norm", config.hidden_size));
  INGLE_ASSIGN_OR_RETURN(auto head, take_head(config, weights, places.head));
  return Weights{
      std::move(embedding),
      std::move(layers),
      std::move(norm),
      std::move(head)};
}

// ---- Its config

Status read_gated_delta(
    FieldReader& fields,
    const std::string& origin,
    GatedDeltaShape& shape) {
  constexpr int kMaxHeads = 1024;
  constexpr int kMaxHeadDim = 1024;
  shape.key_heads = fields.size("linear_num_key_heads", kMaxHeads);
  shape.value_heads = fields.size("linear_num_value_heads", kMaxHeads);
  shape.key_dim = fields.size("linear_key_head_dim", kMaxHeadDim);
  shape.value_dim = fields.size("linear_value_head_dim", kMaxHeadDim);
  shape.taps = fields.size("linear_conv_kernel_dim", kMaxTaps);
  INGLE_RETURN_IF_ERROR(fields.status());
  if (shape.value_heads % shape.key_heads != 0) {
    return Status::corruption(
        origin + ": linear_num_value_heads (" +
        std::to_string(shape.value_heads) +
        ") is not a multiple of linear_num_key_heads (" +
        std::to_string(shape.key_heads) + ")");
  }
  if (shape.taps < 2) {
    return Status::corruption(
        origin + ": linear_conv_kernel_dim has to be at least 2");
  }
  return Status::ok();
}

// Which layers are recurrent, by name or else all but each `interval`-th.
Status read_layers(
    FieldReader& fields,
    const std::string& origin,
    std::vector<LayerConfig>& layers) {
  const auto interval = static_cast<size_t>(
      fields.optional_size("full_attention_interval").value_or(4));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].is_recurrent = (i + 1) % interval != 0;
  }
  const nlohmann::json* types = fields.find("layer_types");
  if (types == nullptr) {
    return Status::ok();
  }
  if (!types->is_array() || types->size() != layers.size()) {
    return Status::corruption(
        origin + ": layer_types has to be a list of " +
        std::to_string(layers.size()) + " names, one for each layer");
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const nlohmann::json& type = (*types)[i];
    if (type != "linear_attention" && type != "full_attention") {
      return Status::unsupported(
          origin + ": layer_types[" + std::to_string(i) +
          "] has to be linear_attention or full_attention; other layers are "
          "not supported");
    }
    layers[i].is_recurrent = type == "linear_attention";
  }
  return Status::ok();
}

} // namespace

Status read_qwen3_5(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  if (fields.optional_count("num_experts", kMaxModelSize).value_or(0) > 0) {
    return Status::unsupported(
        origin + ": num_experts: the variant of " + config.model_type +
        " with a mixture of experts is not supported");
  }
  if (!fields.optional_bool("attn_output_gate").value_or(true)) {
    return Status::unsupported(
        origin +
        ": attn_output_gate: attention without gates is not supported "
        "for " +
        config.model_type);
  }
  config.qk_norm = QkNorm::kHead;
  config.has_attention_gates = true;
  config.qkv_bias = fields.optional_bool("attention_bias").value_or(false);
  config.output_bias = config.qkv_bias;
  INGLE_RETURN_IF_ERROR(
      read_activation(fields, origin, "hidden_act", Activation::kSilu, config));
  if (config.activation != Activation::kSilu) {
    return Status::unsupported(
        origin + ": hidden_act other than silu is not supported for " +
        config.model_type);
  }
  INGLE_RETURN_IF_ERROR(read_gated_delta(fields, origin, config.gated_delta));
  return read_layers(fields, origin, config.layers);
}

Result<std::unique_ptr<const Model>> load_qwen3_5(
    const ModelConfig& config,
    const KvQuantizations& kv,
    WeightSource& weights,
    std::unique_ptr<CpuKernels> kernels) {
  const Places places = places_in(weights);
  // Parts that see, and that guess tokens ahead.
  for (const char* prefix :
       {"model.visual.", "vision_tower.", "mtp.", "language_model.mtp."}) {
    weights.drop_all(prefix);
  }
  ModelConfig own = config;
  own.norms_add_one = is_as_published(config, weights, places);
  INGLE_ASSIGN_OR_RETURN(auto taken, take_weights(own, kv, weights, places));
  return run_mlx("load", [&] {
    return std::unique_ptr<const Model>(std::make_unique<Qwen35>(
        std::move(own), kv, std::move(taken), std::move(kernels)));
  });
}

} // namespace ingle
