#include "model/families/families.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr bool kTakesLayerTypes = true;
constexpr RopeDefaults kGemma4Rope = {.theta = 1e6f};
constexpr RopeDefaults kQwen35Rope = {.theta = 1e5f, .rotary_factor = 0.25f};

// As in transformers, which writes no field that has its usual value.
constexpr std::string_view kGemma3Text = R"({
  "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
  "vocab_size": 262208, "max_position_embeddings": 131072,
  "rms_norm_eps": 1e-6})";

// Some are another family under a name of their own.
constexpr Family kFamilies[] = {
    {"gemma", {}, read_gemma},
    {"gemma2", {}, read_gemma2, kTakesLayerTypes},
    {.model_type = "gemma3",
     .rope = {.theta = 1e6f},
     .read = read_gemma3,
     .takes_layer_types = kTakesLayerTypes,
     .usual = kGemma3Text},
    {"gemma3_text", {.theta = 1e6f}, read_gemma3, kTakesLayerTypes},
    {.model_type = "gemma4",
     .rope = kGemma4Rope,
     .read = read_gemma4,
     .takes_layer_types = kTakesLayerTypes,
     .tier = SupportTier::kTargeted},
    {.model_type = "gemma4_text",
     .rope = kGemma4Rope,
     .read = read_gemma4,
     .takes_layer_types = kTakesLayerTypes,
     .tier = SupportTier::kTargeted},
    {.model_type = "gemma4_unified",
     .rope = kGemma4Rope,
     .read = read_gemma4,
     .takes_layer_types = kTakesLayerTypes,
     .tier = SupportTier::kTargeted},
    {.model_type = "gemma4_unified_text",
     .rope = kGemma4Rope,
     .read = read_gemma4,
     .takes_layer_types = kTakesLayerTypes,
     .tier = SupportTier::kTargeted},
    {"glm4", {.rotary_factor = 0.5f, .traditional = true}, read_glm4},
    {"gpt_oss", {.theta = 1.5e5f}, read_gpt_oss, kTakesLayerTypes},
    {"granite", {}, read_granite},
    {"iquestcoder", {}, read_llama, kTakesLayerTypes},
    {"llama", {}, read_llama, kTakesLayerTypes},
    {"ministral3", {}, read_ministral3, kTakesLayerTypes},
    {"mistral", {}, read_llama, kTakesLayerTypes},
    {.model_type = "mistral3",
     .read = read_llama,
     .takes_layer_types = kTakesLayerTypes,
     .is_wrapper = true},
    {"olmo2", {}, read_olmo2},
    {"olmo3", {.theta = 5e5f}, read_olmo3, kTakesLayerTypes},
    {"phi3", {.drops_other_types = true}, read_phi3},
    {"qwen2", {.theta = 1e6f}, read_qwen2},
    {.model_type = "qwen3",
     .rope = {.theta = 1e6f},
     .read = read_qwen3,
     .tier = SupportTier::kTargeted},
    {.model_type = "qwen3_5",
     .rope = kQwen35Rope,
     .read = read_qwen3_5,
     .takes_layer_types = kTakesLayerTypes,
     .tier = SupportTier::kTargeted},
    {"qwen3_5_moe", kQwen35Rope, read_qwen3_5, kTakesLayerTypes},
    {"qwen3_5_moe_text", kQwen35Rope, read_qwen3_5, kTakesLayerTypes},
    {.model_type = "qwen3_5_text",
     .rope = kQwen35Rope,
     .read = read_qwen3_5,
     .takes_layer_types = kTakesLayerTypes,
     .tier = SupportTier::kTargeted},
    {"qwen3_moe", {.theta = 1e6f}, read_qwen3_moe},
    {"qwen3_next", {.rotary_factor = 0.25f}, read_qwen3_next, kTakesLayerTypes},
    {"smollm3", {}, read_smollm3},
    {.model_type = "starcoder2",
     .rope = {.theta = 1e5f},
     .read = read_starcoder2,
     .norm_eps = {"norm_epsilon", 1e-5f}},
};

// What the ecosystem calls an activation, where ingle has it.
constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"silu", Activation::kSilu},
    {"gelu", Activation::kGelu},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_new", Activation::kGeluTanh},
};

} // namespace

Status check_heads(
    int attention_heads,
    const NamedSize& key_value_heads,
    const NamedSize& head_dim,
    const std::string& origin) {
  const auto text = [](const char* key, int value) {
    return std::string(key) + " (" + std::to_string(value) + ")";
  };
  const std::string all = text("num_attention_heads", attention_heads);
  const std::string dim = text(head_dim.key, head_dim.value);
  if (attention_heads % key_value_heads.value != 0) {
    return Status::corruption(
        origin + ": " + all + " is not a multiple of " +
        text(key_value_heads.key, key_value_heads.value));
  }
  if (head_dim.value % 2 != 0) {
    return Status::corruption(origin + ": " + dim + " has to be even");
  }
  if (attention_heads > kMaxModelSize / head_dim.value) {
    return Status::corruption(
        origin + ": " + all + " times " + dim + " is over " +
        std::to_string(kMaxModelSize));
  }
  return Status::ok();
}

Status read_activation(
    FieldReader& fields,
    const std::string& origin,
    const char* key,
    Activation usual,
    ModelConfig& config) {
  config.activation = usual;
  const std::optional<std::string> name = fields.optional_string(key);
  INGLE_RETURN_IF_ERROR(fields.status());
  if (!name) {
    return Status::ok();
  }
  std::string known;
  for (const auto& [each, activation] : kActivations) {
    if (each == *name) {
      config.activation = activation;
      return Status::ok();
    }
    known += known.empty() ? "" : ", ";
    known += each;
  }
  return Status::unsupported(
      origin + ": " + key + " " + quote_name(*name) +
      " is not supported; these are: " + known);
}

Result<std::optional<std::vector<bool>>> read_windowed_layers(
    FieldReader& fields,
    const std::string& origin,
    const ModelConfig& config) {
  const nlohmann::json* types = fields.find("layer_types");
  if (types == nullptr) {
    return std::optional<std::vector<bool>>();
  }
  if (!types->is_array() || types->size() != config.layers.size()) {
    return Status::corruption(
        origin + ": layer_types has to be a list of " +
        std::to_string(config.layers.size()) + " names, one for each layer");
  }
  std::vector<bool> windowed;
  for (const nlohmann::json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return Status::unsupported(
          origin + ": layer_types[" + std::to_string(windowed.size()) +
          "] has to be full_attention or sliding_attention; other layers are "
          "not supported");
    }
    windowed.push_back(type == "sliding_attention");
  }
  return std::optional(std::move(windowed));
}

void set_windows(
    const std::vector<bool>& windowed,
    int window,
    const RopeConfig& rope,
    ModelConfig& config) {
  size_t of_windowed = 0;
  if (rope != config.ropes.front()) {
    of_windowed = config.ropes.size();
    config.ropes.push_back(rope);
  }
  for (size_t i = 0; i < windowed.size(); ++i) {
    if (windowed[i]) {
      config.layers[i] = {window, of_windowed};
    }
  }
}

Status read_windows(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_ASSIGN_OR_RETURN(
      const auto windowed, read_windowed_layers(fields, origin, config));
  if (!windowed || std::ranges::count(*windowed, true) == 0) {
    return Status::ok();
  }
  INGLE_ASSIGN_OR_RETURN(
      const RopeConfig rope,
      read_rope(
          fields,
          origin,
          config.max_position_embeddings,
          {},
          {.layers = "sliding_attention"}));
  set_windows(*windowed, fields.size("sliding_window"), rope, config);
  return fields.status();
}

Status refuse_windows(
    FieldReader& fields,
    const std::string& origin,
    const ModelConfig& config) {
  INGLE_ASSIGN_OR_RETURN(
      const auto windowed, read_windowed_layers(fields, origin, config));
  if (windowed && std::ranges::count(*windowed, true) != 0) {
    return Status::unsupported(
        origin + ": layer_types with sliding_attention is not supported for " +
        config.model_type);
  }
  return Status::ok();
}

Status read_experts(
    FieldReader& fields,
    const std::string& origin,
    const ExpertKeys& keys,
    ExpertsConfig& experts) {
  constexpr int kMaxExperts = 1 << 12;
  experts.count = fields.size(keys.count, kMaxExperts);
  experts.per_token = fields.size(keys.per_token, kMaxExperts);
  experts.intermediate_size = fields.size(keys.intermediate_size);
  INGLE_RETURN_IF_ERROR(fields.status());
  if (experts.per_token > experts.count) {
    return Status::corruption(
        origin + ": " + keys.per_token + " (" +
        std::to_string(experts.per_token) + ") is over " + keys.count + " (" +
        std::to_string(experts.count) + ")");
  }
  return Status::ok();
}

const Family* find_family(std::string_view model_type) {
  const auto* found =
      std::ranges::find(kFamilies, model_type, &Family::model_type);
  return found == std::end(kFamilies) ? nullptr : found;
}

std::string_view other_name_of(std::string_view model_type) {
  constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
      {"falcon_mamba", "mamba"},
      {"joyai_llm_flash", "deepseek_v3"},
      {"kimi_k2", "deepseek_v3"},
      {"llava", "mistral3"},
      {"minimax_m2", "minimax"},
      {"phi-msft", "phixtral"},
      {"qwen2_5_vl", "qwen2_vl"},
  };
  for (const auto& [type, name] : kOtherNames) {
    if (type == model_type) {
      return name;
    }
  }
  return {};
}

std::string supported_model_types() {
  std::string types;
  for (const Family& family : kFamilies) {
    types += types.empty() ? "" : ", ";
    types += family.model_type;
  }
  return types;
}

} // namespace ingle
