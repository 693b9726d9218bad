#include "model/families/decoder.h"

#include <map>

#include "model/block.h"
#include "model/families/layer_weights.h"
#include "model/make_kv_state.h"
#include "model/run_mlx.h"

namespace ingle {
namespace {

struct Weights {
  Matrix embedding; // [V, D]
  std::optional<LayerInputWeights> layer_inputs;
  std::vector<Block> blocks;
  mx::array norm; // [D]
  std::optional<mx::array> norm_bias; // [D], of a layer norm
  std::optional<Matrix> head; // [V, D]; none: tied to the embedding
};

class Decoder final : public Model {
 public:
  Decoder(
      ModelConfig config,
      KvQuantizations kv,
      Weights weights,
      AdapterLayout layout,
      std::unique_ptr<CpuKernels> kernels)
      : config_(std::move(config)),
        kv_(std::move(kv)),
        weights_(std::move(weights)),
        kernels_(std::move(kernels)) {
    for (size_t i = 0; i < weights_.blocks.size(); ++i) {
      Block& block = weights_.blocks[i];
      if (auto* attention = std::get_if<AttentionBlock>(&block)) {
        attention->rope = rope_of(config_.layers[attention->layer]);
      }
      moving_on_ = moves_caches_on(block) ? i + 1 : moving_on_;
      for_each_adaptable(block, [&](const Linear& linear) {
        if (linear.number) {
          layout.linears[*linear.number].takes_adapters = true;
        }
      });
    }
    layout_ = std::make_shared<const AdapterLayout>(std::move(layout));
  }

  const ModelConfig& config() const override {
    return config_;
  }

  KvState make_kv() const override {
    return make_kv_state(
        config_, kv_, weights_.norm.dtype(), kernels_ != nullptr);
  }

  std::optional<mx::array> forward(std::span<const Row> rows) const override {
    Step step(rows, kernels_.get());
    const float eps = config_.rms_norm_eps;
    const std::span blocks(weights_.blocks);
    mx::array x = embed(step, weights_.embedding, config_.embedding_scale);
    if (weights_.layer_inputs) {
      step.set_layer_inputs(layer_inputs(step, x, *weights_.layer_inputs, eps));
    }
    x = run_blocks(step, x, blocks.first(moving_on_), eps);
    const std::optional<mx::array> wanted = take_wanted(step, x);
    if (!wanted) {
      return std::nullopt;
    }
    Step last = step.wanted();
    if (step.layer_inputs()) {
      last.set_layer_inputs(take_wanted(step, *step.layer_inputs()));
    }
    x = run_blocks(last, *wanted, blocks.subspan(moving_on_), eps);
    const Matrix& head = weights_.head ? *weights_.head : weights_.embedding;
    return norm_and_head(
        step,
        x,
        weights_.norm,
        head,
        eps,
        config_.logits_soft_cap,
        weights_.norm_bias ? &*weights_.norm_bias : nullptr);
  }

  std::shared_ptr<const AdapterLayout> adapter_layout() const override {
    return layout_;
  }

  CpuKernels* kernels() const override {
    return kernels_.get();
  }

 private:
  // Null: no positions.
  const Rope* rope_of(const LayerConfig& layer) {
    if (!layer.rope) {
      return nullptr;
    }
    const int head_dim = config_.head_dim_of(layer);
    const auto at = std::pair(*layer.rope, head_dim);
    return &ropes_.try_emplace(at, config_.ropes[*layer.rope], head_dim)
                .first->second;
  }

  ModelConfig config_;
  KvQuantizations kv_;
  Weights weights_;
  std::unique_ptr<CpuKernels> kernels_;
  std::shared_ptr<const AdapterLayout> layout_;
  std::map<std::pair<size_t, int>, Rope> ropes_; // by number and head_dim
  // Blocks up to the last that moves caches on: what comes after them is
  // computed of the tokens whose logits are wanted.
  size_t moving_on_ = 0;
};

// Where a file has the weights: by themselves, or beside those of a part that
// sees or hears, as MLX's converters put them or as they were published.
struct Places {
  std::string model;
  std::string head;

  std::string layer(size_t i) const {
    return model + ".layers." + std::to_string(i);
  }
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

// Parts that see or hear, what brings them together with text, and those that
// guess tokens ahead.
void drop_other_parts(WeightSource& weights) {
  for (const char* prefix :
       {"visual.",
        "vision_tower.",
        "vision_embedder.",
        "audio_tower.",
        "embed_vision.",
        "embed_audio.",
        "multi_modal_projector."}) {
    weights.drop_all(prefix);
    weights.drop_all(std::string("model.") + prefix);
  }
  for (const char* prefix : {"mtp.", "language_model.mtp."}) {
    weights.drop_all(prefix);
  }
}

// Families with convolutions have norms that multiply by 1 + w in files as they
// were published; MLX's converters add the one.
bool adds_one(
    const ModelConfig& config,
    const WeightSource& weights,
    const Places& places) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i].is_recurrent) {
      return has_taps_last(
          weights, places.layer(i) + ".linear_attn.conv1d.weight");
    }
  }
  return config.norms_add_one;
}

Status take_layer(
    const ModelConfig& config,
    const KvQuantizations& kv,
    WeightSource& weights,
    const std::string& path,
    size_t i,
    std::vector<Block>& blocks) {
  const LayerConfig& layer = config.layers[i];
  INGLE_ASSIGN_OR_RETURN(
      const float scalar, take_layer_scalar(config, weights, path));
  const bool has_inputs = config.layer_inputs.width > 0;
  if (layer.is_recurrent) {
    INGLE_ASSIGN_OR_RETURN(auto delta, take_gated_delta(config, weights, path));
    blocks.emplace_back(
        GatedDeltaBlock{std::move(delta), config.gated_delta, i});
  } else {
    INGLE_ASSIGN_OR_RETURN(
        auto attention, take_attention(config, layer, weights, path));
    const size_t cache = layer.donor.value_or(i);
    blocks.emplace_back(AttentionBlock{
        std::move(attention),
        attention_shape(config, layer, kv[cache]),
        nullptr,
        cache});
  }
  if (layer.has_experts && config.experts.beside_mlp) {
    INGLE_ASSIGN_OR_RETURN(
        auto moe, take_moe_beside_mlp(config, layer, weights, path));
    moe.residual.total = has_inputs ? 1 : scalar;
    blocks.emplace_back(std::move(moe));
  } else if (layer.has_experts) {
    INGLE_ASSIGN_OR_RETURN(auto moe, take_moe(config, weights, path));
    blocks.emplace_back(std::move(moe));
  } else {
    INGLE_ASSIGN_OR_RETURN(auto mlp, take_mlp(config, layer, weights, path));
    mlp.residual.total = has_inputs ? 1 : scalar;
    blocks.emplace_back(std::move(mlp));
  }
  if (has_inputs) {
    INGLE_ASSIGN_OR_RETURN(
        auto input, take_layer_input(config, weights, path, i));
    input.mlp.residual.total = scalar;
    blocks.emplace_back(std::move(input));
  }
  return Status::ok();
}

Result<Weights> take_weights(
    const ModelConfig& config,
    const KvQuantizations& kv,
    WeightSource& weights,
    const Places& places) {
  const int hidden = config.hidden_size;
  INGLE_ASSIGN_OR_RETURN(
      auto embedding,
      weights.take_matrix(
          places.model + ".embed_tokens", config.vocab_size, hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto layer_inputs, take_layer_inputs(config, weights, places.model));
  std::vector<Block> blocks;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    INGLE_RETURN_IF_ERROR(
        take_layer(config, kv, weights, places.layer(i), i, blocks));
  }
  const std::string norm_path = places.model + ".norm";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(config, weights, norm_path, hidden, config.logits_scale));
  INGLE_ASSIGN_OR_RETURN(
      auto norm_bias, take_norm_bias(config, weights, norm_path));
  INGLE_ASSIGN_OR_RETURN(auto head, take_head(config, weights, places.head));
  return Weights{
      std::move(embedding),
      std::move(layer_inputs),
      std::move(blocks),
      std::move(norm),
      std::move(norm_bias),
      std::move(head)};
}

} // namespace

Result<std::unique_ptr<const Model>> load_decoder(
    const ModelConfig& config,
    const KvQuantizations& kv,
    WeightSource& weights,
    std::unique_ptr<CpuKernels> kernels) {
  const Places places = places_in(weights);
  drop_other_parts(weights);
  ModelConfig own = config;
  own.norms_add_one = adds_one(config, weights, places);
  INGLE_ASSIGN_OR_RETURN(auto taken, take_weights(own, kv, weights, places));
  return run_mlx("load", [&] {
    return std::unique_ptr<const Model>(std::make_unique<Decoder>(
        std::move(own),
        kv,
        std::move(taken),
        weights.layout(),
        std::move(kernels)));
  });
}

} // namespace ingle
