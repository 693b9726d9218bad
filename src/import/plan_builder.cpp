#include "import/plan_builder.h"

#include <cmath>

#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr uint64_t kMaxSize = INT32_MAX; // of anything config.json counts
constexpr int64_t kMaxLayers = 4096; // ten times the deepest models

std::vector<int64_t> sizes_of(TensorShape shape, const TransformerSizes& s) {
  switch (shape) {
    case TensorShape::kHidden:
      return {s.hidden};
    case TensorShape::kHead:
      return {s.head_dim};
    case TensorShape::kQuery:
      return {s.heads * s.head_dim, s.hidden};
    case TensorShape::kKey:
      return {s.kv_heads * s.head_dim, s.hidden};
    case TensorShape::kOutput:
      return {s.hidden, s.heads * s.head_dim};
    case TensorShape::kUp:
      return {s.mlp, s.hidden};
    case TensorShape::kDown:
      return {s.hidden, s.mlp};
  }
  return {};
}

} // namespace

PlanBuilder::PlanBuilder(const GgufFile& file, std::string_view architecture)
    : file_(file), architecture_(architecture) {}

std::string PlanBuilder::key(std::string_view name) const {
  return architecture_ + "." + std::string(name);
}

Status PlanBuilder::corruption(const std::string& problem) const {
  return Status::corruption(file_.origin() + ": " + problem);
}

Status PlanBuilder::unsupported(const std::string& problem) const {
  return Status::unsupported(file_.origin() + ": " + problem);
}

Status PlanBuilder::refuse_experts() const {
  INGLE_ASSIGN_OR_RETURN(
      const auto experts, file_.find<uint64_t>(key("expert_count")));
  return experts.value_or(0) == 0
      ? Status::ok()
      : unsupported(
            "is a mixture of " + std::to_string(*experts) +
            " experts, which ingle does not support for architecture " +
            quote_name(architecture_));
}

// A list has one value for each layer.
Status PlanBuilder::refuse_sizes_by_layer() const {
  for (const char* name :
       {"attention.head_count",
        "attention.head_count_kv",
        "feed_forward_length"}) {
    if (file_.is_list(key(name))) {
      return unsupported(
          "metadata key " + quote_name(key(name)) +
          " differs from layer to layer, which ingle does not support");
    }
  }
  return Status::ok();
}

Result<std::optional<int64_t>> PlanBuilder::find_size(
    std::string_view name) const {
  INGLE_ASSIGN_OR_RETURN(const auto value, file_.find<uint64_t>(key(name)));
  if (!value) {
    return std::optional<int64_t>();
  }
  if (*value == 0 || *value > kMaxSize) {
    return corruption(
        "metadata key " + quote_name(key(name)) + " is " +
        std::to_string(*value));
  }
  return std::optional(static_cast<int64_t>(*value));
}

Status PlanBuilder::read_size(std::string_view name, int64_t& size) const {
  INGLE_ASSIGN_OR_RETURN(const auto value, find_size(name));
  if (!value) {
    return corruption("metadata key " + quote_name(key(name)) + " is missing");
  }
  size = *value;
  return Status::ok();
}

Status PlanBuilder::read_sizes() {
  INGLE_RETURN_IF_ERROR(refuse_experts());
  INGLE_RETURN_IF_ERROR(refuse_sizes_by_layer());
  INGLE_RETURN_IF_ERROR(read_size("block_count", sizes_.layers));
  if (sizes_.layers > kMaxLayers) {
    return corruption(
        "metadata key " + quote_name(key("block_count")) + " is " +
        std::to_string(sizes_.layers));
  }
  INGLE_RETURN_IF_ERROR(read_size("embedding_length", sizes_.hidden));
  INGLE_RETURN_IF_ERROR(read_size("feed_forward_length", sizes_.mlp));
  INGLE_RETURN_IF_ERROR(read_size("attention.head_count", sizes_.heads));
  INGLE_RETURN_IF_ERROR(read_size("context_length", sizes_.context));
  INGLE_ASSIGN_OR_RETURN(
      const auto kv_heads, find_size("attention.head_count_kv"));
  sizes_.kv_heads = kv_heads.value_or(sizes_.heads);
  INGLE_ASSIGN_OR_RETURN(
      const auto tokens,
      file_.get_list<std::string_view>("tokenizer.ggml.tokens"));
  sizes_.vocabulary = static_cast<int64_t>(tokens.size());
  return read_head_dim();
}

Status PlanBuilder::read_head_dim() {
  INGLE_ASSIGN_OR_RETURN(
      const auto key_length, find_size("attention.key_length"));
  if (!key_length && sizes_.hidden % sizes_.heads != 0) {
    return corruption("its heads do not divide its embedding length");
  }
  sizes_.head_dim = key_length.value_or(sizes_.hidden / sizes_.heads);
  if (sizes_.head_dim % 2 != 0 || sizes_.heads % sizes_.kv_heads != 0) {
    return corruption("its attention heads do not fit together");
  }
  for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
    INGLE_ASSIGN_OR_RETURN(const auto length, find_size(name));
    if (length.value_or(sizes_.head_dim) != sizes_.head_dim) {
      return unsupported(
          key(name) + " is " + std::to_string(*length) +
          ", but ingle needs it to be the head's " +
          std::to_string(sizes_.head_dim));
    }
  }
  return Status::ok();
}

Status PlanBuilder::add(
    const std::string& gguf_name,
    const std::string& module,
    const std::vector<int64_t>& shape,
    bool norm_is_one_plus,
    int64_t interleaved_heads) {
  const GgufTensor* tensor = file_.find_tensor(gguf_name);
  if (tensor == nullptr) {
    return corruption("tensor " + quote_name(gguf_name) + " is missing");
  }
  if (tensor->shape != shape) {
    return corruption(
        "tensor " + quote_name(gguf_name) +
        " does not have the shape that the metadata implies");
  }
  used_.insert(gguf_name);
  const bool is_matrix = shape.size() == 2;
  plan_.tensors.push_back(
      {tensor,
       module,
       is_matrix,
       interleaved_heads,
       norm_is_one_plus && !is_matrix});
  return Status::ok();
}

Status PlanBuilder::add_tensors(
    std::span<const LayerTensor> layer,
    bool norms_are_one_plus) {
  const std::vector<int64_t> embedding = {sizes_.vocabulary, sizes_.hidden};
  INGLE_RETURN_IF_ERROR(
      add("token_embd.weight", "model.embed_tokens", embedding, false, 0));
  for (int64_t i = 0; i < sizes_.layers; ++i) {
    const std::string number = std::to_string(i);
    for (const LayerTensor& tensor : layer) {
      const int64_t heads =
          tensor.shape == TensorShape::kQuery ? sizes_.heads : sizes_.kv_heads;
      INGLE_RETURN_IF_ERROR(
          add("blk." + number + "." + tensor.gguf_name,
              "model.layers." + number + "." + tensor.module,
              sizes_of(tensor.shape, sizes_),
              norms_are_one_plus,
              tensor.is_interleaved ? heads : 0));
    }
  }
  INGLE_RETURN_IF_ERROR(
      add("output_norm.weight",
          "model.norm",
          {sizes_.hidden},
          norms_are_one_plus,
          0));
  is_tied_ = file_.find_tensor("output.weight") == nullptr;
  return is_tied_ ? Status::ok()
                  : add("output.weight", "lm_head", embedding, false, 0);
}

Status PlanBuilder::write_config(const char* model_type, float usual_theta) {
  INGLE_ASSIGN_OR_RETURN(
      const auto epsilon,
      file_.get<float>(key("attention.layer_norm_rms_epsilon")));
  INGLE_ASSIGN_OR_RETURN(
      const auto theta, file_.find<float>(key("rope.freq_base")));
  theta_ = theta.value_or(usual_theta);
  if (!(epsilon >= 0 && epsilon < 1) || !(theta_ > 0) ||
      !std::isfinite(theta_)) {
    return corruption("its norm epsilon or rope base is out of range");
  }
  auto& config = plan_.config;
  config["model_type"] = model_type;
  config["hidden_size"] = sizes_.hidden;
  config["intermediate_size"] = sizes_.mlp;
  config["num_hidden_layers"] = sizes_.layers;
  config["num_attention_heads"] = sizes_.heads;
  config["num_key_value_heads"] = sizes_.kv_heads;
  config["head_dim"] = sizes_.head_dim;
  config["attention_bias"] = false;
  config["rms_norm_eps"] = shortest_decimal(epsilon);
  config["rope_theta"] = shortest_decimal(theta_);
  config["max_position_embeddings"] = sizes_.context;
  config["vocab_size"] = sizes_.vocabulary;
  config["tie_word_embeddings"] = is_tied_;
  return write_rope_scaling();
}

Status PlanBuilder::write_rope_scaling() {
  INGLE_ASSIGN_OR_RETURN(
      const auto type, file_.find<std::string_view>(key("rope.scaling.type")));
  INGLE_ASSIGN_OR_RETURN(
      const auto factor, file_.find<float>(key("rope.scaling.factor")));
  INGLE_ASSIGN_OR_RETURN(
      const auto old_factor, file_.find<float>(key("rope.scale_linear")));
  const float linear = factor.value_or(old_factor.value_or(1.0f));
  const bool is_linear = type.value_or("linear") == "linear";
  if (!is_linear && *type != "none") {
    return unsupported(
        "rope scaling " + quote_name(*type) + " is not supported");
  }
  if (is_linear && linear != 1.0f) {
    if (!(linear > 0) || !std::isfinite(linear)) {
      return corruption("its rope scaling factor is out of range");
    }
    plan_.config["rope_scaling"] = {
        {"rope_type", "linear"}, {"factor", shortest_decimal(linear)}};
  }
  return Status::ok();
}

void PlanBuilder::replace(const GgufTensor& tensor, std::string replaced_by) {
  used_.insert(tensor.name);
  plan_.replaced.push_back({&tensor, std::move(replaced_by)});
}

Result<ModelPlan> PlanBuilder::finish() {
  for (const GgufTensor& tensor : file_.tensors()) {
    if (used_.count(tensor.name) == 0) {
      return unsupported(
          "tensor " + quote_name(tensor.name) +
          " is not one that ingle knows of architecture " +
          quote_name(architecture_));
    }
  }
  return std::move(plan_);
}

} // namespace ingle
