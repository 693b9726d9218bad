#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <set>

#include "import/dequantize.h"
#include "import/model_plan.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr uint64_t kMaxSize = INT32_MAX; // of anything config.json counts
constexpr int64_t kMaxLayers = 4096; // ten times the deepest models

struct LlamaSizes {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t mlp = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t context = 0;
  int64_t vocabulary = 0;
};

enum class Rows { kInPlace, kQuery, kKey };

// The tensors of one layer; sizes by name, outermost first.
struct LayerTensor {
  const char* gguf_name; // after "blk.N."
  const char* module; // after "model.layers.N."
  std::vector<int64_t> (*shape)(const LlamaSizes&);
  Rows rows;
};

const std::array<LayerTensor, 9> kLayerTensors = {{
    {"attn_norm.weight",
     "input_layernorm",
     [](const LlamaSizes& s) { return std::vector{s.hidden}; },
     Rows::kInPlace},
    {"attn_q.weight",
     "self_attn.q_proj",
     [](const LlamaSizes& s) {
       return std::vector{s.heads * s.head_dim, s.hidden};
     },
     Rows::kQuery},
    {"attn_k.weight",
     "self_attn.k_proj",
     [](const LlamaSizes& s) {
       return std::vector{s.kv_heads * s.head_dim, s.hidden};
     },
     Rows::kKey},
    {"attn_v.weight",
     "self_attn.v_proj",
     [](const LlamaSizes& s) {
       return std::vector{s.kv_heads * s.head_dim, s.hidden};
     },
     Rows::kInPlace},
    {"attn_output.weight",
     "self_attn.o_proj",
     [](const LlamaSizes& s) {
       return std::vector{s.hidden, s.heads * s.head_dim};
     },
     Rows::kInPlace},
    {"ffn_norm.weight",
     "post_attention_layernorm",
     [](const LlamaSizes& s) { return std::vector{s.hidden}; },
     Rows::kInPlace},
    {"ffn_gate.weight",
     "mlp.gate_proj",
     [](const LlamaSizes& s) { return std::vector{s.mlp, s.hidden}; },
     Rows::kInPlace},
    {"ffn_up.weight",
     "mlp.up_proj",
     [](const LlamaSizes& s) { return std::vector{s.mlp, s.hidden}; },
     Rows::kInPlace},
    {"ffn_down.weight",
     "mlp.down_proj",
     [](const LlamaSizes& s) { return std::vector{s.hidden, s.mlp}; },
     Rows::kInPlace},
}};

// The divisor of each rotary frequency under the "llama3" scaling.
std::vector<float> llama3_divisors(
    int64_t head_dim,
    float theta,
    double factor,
    double original_context) {
  constexpr double kLowFactor = 1;
  constexpr double kHighFactor = 4;
  std::vector<float> divisors;
  for (int64_t i = 0; i < head_dim; i += 2) {
    const double exponent =
        static_cast<double>(i) / static_cast<double>(head_dim);
    const double wavelength =
        2 * std::numbers::pi * std::pow(static_cast<double>(theta), exponent);
    const double smooth = (original_context / wavelength - kLowFactor) /
        (kHighFactor - kLowFactor);
    const double kept = std::clamp(smooth, 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - kept) / factor + kept)));
  }
  return divisors;
}

class LlamaPlanner {
 public:
  explicit LlamaPlanner(const GgufFile& file) : file_(file) {}

  Result<ModelPlan> plan() {
    INGLE_RETURN_IF_ERROR(refuse_experts());
    INGLE_RETURN_IF_ERROR(refuse_sizes_by_layer());
    INGLE_RETURN_IF_ERROR(read_sizes());
    INGLE_RETURN_IF_ERROR(add_tensors());
    INGLE_RETURN_IF_ERROR(write_config());
    INGLE_RETURN_IF_ERROR(check_nothing_is_left());
    return std::move(plan_);
  }

 private:
  Status corruption(const std::string& problem) const {
    return Status::corruption(file_.origin() + ": " + problem);
  }
  Status unsupported(const std::string& problem) const {
    return Status::unsupported(file_.origin() + ": " + problem);
  }

  Status refuse_experts() const {
    INGLE_ASSIGN_OR_RETURN(
        const auto experts, file_.find<uint64_t>("llama.expert_count"));
    return experts.value_or(0) == 0
        ? Status::ok()
        : unsupported(
              "is a mixture of " + std::to_string(*experts) +
              " experts, which ingle does not support for architecture "
              "'llama'");
  }

  // A list has one value for each layer.
  Status refuse_sizes_by_layer() const {
    for (const char* key :
         {"llama.attention.head_count",
          "llama.attention.head_count_kv",
          "llama.feed_forward_length"}) {
      if (file_.is_list(key)) {
        return unsupported(
            "metadata key " + quote_name(key) +
            " differs from layer to layer, which ingle does not support");
      }
    }
    return Status::ok();
  }

  Result<std::optional<int64_t>> find_size(const std::string& key) const {
    INGLE_ASSIGN_OR_RETURN(const auto value, file_.find<uint64_t>(key));
    if (!value) {
      return std::optional<int64_t>();
    }
    if (*value == 0 || *value > kMaxSize) {
      return corruption(
          "metadata key " + quote_name(key) + " is " + std::to_string(*value));
    }
    return std::optional(static_cast<int64_t>(*value));
  }

  Status read_size(const std::string& key, int64_t& size) const {
    INGLE_ASSIGN_OR_RETURN(const auto value, find_size(key));
    if (!value) {
      return corruption("metadata key " + quote_name(key) + " is missing");
    }
    size = *value;
    return Status::ok();
  }

  Status read_sizes() {
    INGLE_RETURN_IF_ERROR(read_size("llama.block_count", sizes_.layers));
    if (sizes_.layers > kMaxLayers) {
      return corruption(
          "metadata key 'llama.block_count' is " +
          std::to_string(sizes_.layers));
    }
    INGLE_RETURN_IF_ERROR(read_size("llama.embedding_length", sizes_.hidden));
    INGLE_RETURN_IF_ERROR(read_size("llama.feed_forward_length", sizes_.mlp));
    INGLE_RETURN_IF_ERROR(
        read_size("llama.attention.head_count", sizes_.heads));
    INGLE_RETURN_IF_ERROR(read_size("llama.context_length", sizes_.context));
    INGLE_ASSIGN_OR_RETURN(
        const auto kv_heads, find_size("llama.attention.head_count_kv"));
    sizes_.kv_heads = kv_heads.value_or(sizes_.heads);
    INGLE_ASSIGN_OR_RETURN(
        const auto tokens,
        file_.get_list<std::string_view>("tokenizer.ggml.tokens"));
    sizes_.vocabulary = static_cast<int64_t>(tokens.size());
    return read_head_dim();
  }

  Status read_head_dim() {
    INGLE_ASSIGN_OR_RETURN(
        const auto key_length, find_size("llama.attention.key_length"));
    if (!key_length && sizes_.hidden % sizes_.heads != 0) {
      return corruption("its heads do not divide its embedding length");
    }
    sizes_.head_dim = key_length.value_or(sizes_.hidden / sizes_.heads);
    if (sizes_.head_dim % 2 != 0 || sizes_.heads % sizes_.kv_heads != 0) {
      return corruption("its attention heads do not fit together");
    }
    for (const char* key :
         {"llama.attention.value_length", "llama.rope.dimension_count"}) {
      INGLE_ASSIGN_OR_RETURN(const auto length, find_size(key));
      if (length.value_or(sizes_.head_dim) != sizes_.head_dim) {
        return unsupported(
            std::string(key) + " is " + std::to_string(*length) +
            ", but ingle needs it to be the head's " +
            std::to_string(sizes_.head_dim));
      }
    }
    return Status::ok();
  }

  Status add(
      const std::string& gguf_name,
      const std::string& module,
      const std::vector<int64_t>& shape,
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
    plan_.tensors.push_back(
        {tensor, module, shape.size() == 2, interleaved_heads});
    return Status::ok();
  }

  Status add_tensors() {
    INGLE_RETURN_IF_ERROR(
        add("token_embd.weight",
            "model.embed_tokens",
            {sizes_.vocabulary, sizes_.hidden},
            0));
    for (int64_t layer = 0; layer < sizes_.layers; ++layer) {
      const std::string number = std::to_string(layer);
      for (const LayerTensor& tensor : kLayerTensors) {
        const int64_t heads = tensor.rows == Rows::kQuery ? sizes_.heads
            : tensor.rows == Rows::kKey                   ? sizes_.kv_heads
                                                          : 0;
        INGLE_RETURN_IF_ERROR(
            add("blk." + number + "." + tensor.gguf_name,
                "model.layers." + number + "." + tensor.module,
                tensor.shape(sizes_),
                heads));
      }
    }
    INGLE_RETURN_IF_ERROR(
        add("output_norm.weight", "model.norm", {sizes_.hidden}, 0));
    is_tied_ = file_.find_tensor("output.weight") == nullptr;
    return is_tied_ ? Status::ok()
                    : add("output.weight",
                          "lm_head",
                          {sizes_.vocabulary, sizes_.hidden},
                          0);
  }

  Status write_config() {
    INGLE_ASSIGN_OR_RETURN(
        const auto epsilon,
        file_.get<float>("llama.attention.layer_norm_rms_epsilon"));
    INGLE_ASSIGN_OR_RETURN(
        const auto theta, file_.find<float>("llama.rope.freq_base"));
    theta_ = theta.value_or(10000.0f);
    if (!(epsilon >= 0 && epsilon < 1) || !(theta_ > 0) ||
        !std::isfinite(theta_)) {
      return corruption("its norm epsilon or rope base is out of range");
    }
    auto& config = plan_.config;
    config["model_type"] = "llama";
    config["architectures"] = {"LlamaForCausalLM"};
    config["hidden_size"] = sizes_.hidden;
    config["intermediate_size"] = sizes_.mlp;
    config["num_hidden_layers"] = sizes_.layers;
    config["num_attention_heads"] = sizes_.heads;
    config["num_key_value_heads"] = sizes_.kv_heads;
    config["head_dim"] = sizes_.head_dim;
    config["hidden_act"] = "silu";
    config["attention_bias"] = false;
    config["mlp_bias"] = false;
    config["rms_norm_eps"] = shortest_decimal(epsilon);
    config["rope_theta"] = shortest_decimal(theta_);
    config["max_position_embeddings"] = sizes_.context;
    config["vocab_size"] = sizes_.vocabulary;
    config["tie_word_embeddings"] = is_tied_;
    return write_rope_scaling();
  }

  Status write_rope_scaling() {
    INGLE_ASSIGN_OR_RETURN(
        const auto type,
        file_.find<std::string_view>("llama.rope.scaling.type"));
    INGLE_ASSIGN_OR_RETURN(
        const auto factor, file_.find<float>("llama.rope.scaling.factor"));
    INGLE_ASSIGN_OR_RETURN(
        const auto old_factor, file_.find<float>("llama.rope.scale_linear"));
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
    return replace_rope_freqs();
  }

  // rope_freqs.weight divides each rotary frequency. Converters write it for
  // the "llama3" scaling and drop the parameters that it was made from; these
  // are found again by trying the ones that models use.
  Status replace_rope_freqs() {
    const GgufTensor* tensor = file_.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) {
      return Status::ok();
    }
    const std::string name = "tensor 'rope_freqs.weight'";
    if (tensor->type != GgmlType::kF32 ||
        tensor->shape != std::vector{sizes_.head_dim / 2}) {
      return corruption(name + " is not one f32 for each rotary frequency");
    }
    if (plan_.config.contains("rope_scaling")) {
      return unsupported(name + " together with linear rope scaling");
    }
    std::vector<float> divisors(static_cast<size_t>(tensor->columns()));
    dequantize(tensor->type, tensor->bytes, divisors);
    used_.insert(tensor->name);
    if (std::all_of(divisors.begin(), divisors.end(), [](float divisor) {
          return divisor == 1.0f;
        })) {
      plan_.replaced.push_back({tensor, "nothing: it scales by 1"});
      return Status::ok();
    }
    // The last is the longest wavelength, which gets the whole factor.
    const double factor = shortest_decimal(divisors.back());
    for (const int original : {8192, 4096, 16384, 32768, 131072}) {
      if (is_close(
              divisors,
              llama3_divisors(sizes_.head_dim, theta_, factor, original))) {
        plan_.config["rope_scaling"] = {
            {"rope_type", "llama3"},
            {"factor", factor},
            {"low_freq_factor", 1.0},
            {"high_freq_factor", 4.0},
            {"original_max_position_embeddings", original}};
        plan_.replaced.push_back({tensor, "config.json's rope_scaling"});
        return Status::ok();
      }
    }
    return unsupported(
        name + " is a rope scaling that ingle does not recognise");
  }

  static bool is_close(
      const std::vector<float>& found,
      const std::vector<float>& expected) {
    constexpr float kTolerance = 1e-4f; // relative; converters compute in f32
    for (size_t i = 0; i < found.size(); ++i) {
      if (!(std::abs(found[i] - expected[i]) <= kTolerance * expected[i])) {
        return false;
      }
    }
    return true;
  }

  Status check_nothing_is_left() const {
    for (const GgufTensor& tensor : file_.tensors()) {
      if (used_.count(tensor.name) == 0) {
        return unsupported(
            "tensor " + quote_name(tensor.name) +
            " is not one that ingle knows of architecture 'llama'");
      }
    }
    return Status::ok();
  }

  const GgufFile& file_;
  LlamaSizes sizes_;
  float theta_ = 0;
  bool is_tied_ = false;
  std::set<std::string> used_; // names of tensors in the plan
  ModelPlan plan_;
};

} // namespace

Result<ModelPlan> plan_llama(const GgufFile& file) {
  return LlamaPlanner(file).plan();
}

} // namespace ingle
