#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "model/families/families.h"
#include "model/field_reader.h"
#include "model/rope_fields.h"
#include "weights/strict_json.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

constexpr int kMaxContext = 1 << 30; // tokens
constexpr int kMaxVocabulary = 1 << 22;
constexpr int kMaxLayers = 4096; // ten times the deepest models
constexpr double kTiny = 1e-12;

Result<Quantization> parse_quantization(
    const Json& object,
    const std::string& origin) {
  FieldReader reader(object, origin);
  Quantization quantization{reader.size("group_size"), reader.size("bits")};
  const std::string mode = reader.optional_string("mode").value_or("affine");
  INGLE_RETURN_IF_ERROR(reader.status());
  if (mode == "mxfp4") {
    quantization.mode = QuantizationMode::kMxfp4;
  }
  constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
  constexpr std::array kGroups = {32, 64, 128};
  const bool known = quantization == kMxfp4 ||
      (mode == "affine" && std::ranges::count(kBits, quantization.bits) != 0 &&
       std::ranges::count(kGroups, quantization.group_size) != 0);
  if (!known) {
    return Status::unsupported(
        origin + ": quantisation mode " + quote_name(mode) + " with " +
        std::to_string(quantization.bits) + " bits in groups of " +
        std::to_string(quantization.group_size) +
        " is not supported; affine with 2, 3, 4, 5, 6 or 8 bits in groups of "
        "32, 64 or 128 is, and mxfp4 with 4 bits in groups of 32");
  }
  return quantization;
}

// Of all modules. A `quant_method` is how models are published that MLX's tools
// have not converted; one that is mxfp4 says nothing else of it.
Result<Quantization> parse_default_quantization(
    const Json& object,
    const std::string& origin) {
  FieldReader reader(object, origin);
  const auto method = reader.optional_string("quant_method");
  INGLE_RETURN_IF_ERROR(reader.status());
  if (!method) {
    return parse_quantization(object, origin);
  }
  if (*method != "mxfp4") {
    return Status::unsupported(
        origin + ": quant_method " + quote_name(*method) +
        " is not supported; weights have to be unquantised, or quantised as "
        "MLX's affine or mxfp4");
  }
  return kMxfp4;
}

Result<QuantizationConfig> parse_quantization_config(
    const Json& root,
    const std::string& origin) {
  QuantizationConfig config;
  FieldReader reader(root, origin);
  const char* key = "quantization";
  const Json* object = reader.find(key);
  if (object == nullptr) {
    key = "quantization_config";
    object = reader.find(key);
  }
  if (object == nullptr) {
    return config;
  }
  const std::string where = origin + ": " + key;
  if (!object->is_object()) {
    return Status::corruption(where + " has to be an object");
  }
  INGLE_ASSIGN_OR_RETURN(
      config.everywhere, parse_default_quantization(*object, where));
  for (const auto& [path, value] : object->items()) {
    if (value.is_boolean() && !value.get<bool>()) {
      config.overrides[path] = std::nullopt;
    } else if (value.is_object()) {
      INGLE_ASSIGN_OR_RETURN(
          config.overrides[path],
          parse_quantization(value, where + "[" + quote_name(path) + "]"));
    }
  }
  return config;
}

// A drafter only proposes tokens for another model.
bool is_drafter(std::string_view model_type) {
  return model_type.ends_with("_assistant");
}

Result<const Family*> family_of(
    const std::string& model_type,
    const std::string& origin) {
  if (model_type.empty()) {
    return Status::corruption(
        origin + ": the field 'model_type' is missing (a string is expected)");
  }
  const std::string where = origin + ": model_type " + quote_name(model_type);
  if (is_drafter(model_type)) {
    return Status::unsupported(
        where +
        " is a drafter for another model and can't be served by itself");
  }
  const Family* family = find_family(model_type);
  if (family == nullptr) {
    const std::string_view name = other_name_of(model_type);
    return Status::unsupported(
        where + (name.empty() ? "" : " (a kind of " + std::string(name) + ")") +
        " is not supported; this version runs: " + supported_model_types());
  }
  return family;
}

// What a file may say of the text's part, of the whole, or of both.
Status
read_said_twice(FieldReader& text, FieldReader& whole, ModelConfig& config) {
  const auto of_text = text.optional_bool("tie_word_embeddings");
  const auto of_whole = whole.optional_bool("tie_word_embeddings");
  config.tie_word_embeddings = of_text ? of_text : of_whole;
  if (of_text == false && of_whole == true) {
    // Some tools believe the one, some the other; all write weights that fit.
    config.tie_word_embeddings = std::nullopt;
  }
  std::set<TokenId> known;
  for (FieldReader* each : {&text, &whole}) {
    for (const TokenId id : each->token_ids("eos_token_id")) {
      if (known.insert(id).second) {
        config.eos.push_back(id);
      }
    }
    INGLE_RETURN_IF_ERROR(each->status());
  }
  return Status::ok();
}

// Of each rope, with the heads of the layers that have it.
Status check_ropes(const ModelConfig& config, const std::string& origin) {
  std::set<std::pair<size_t, int>> checked;
  for (const LayerConfig& layer : config.layers) {
    const int head_dim = config.head_dim_of(layer);
    if (layer.rope && checked.emplace(*layer.rope, head_dim).second) {
      INGLE_RETURN_IF_ERROR(
          check_rope(config.ropes[*layer.rope], head_dim, origin));
    }
  }
  return Status::ok();
}

} // namespace

size_t ModelConfig::cache_count() const {
  const auto sharer = std::ranges::find_if(
      layers, [](const LayerConfig& layer) { return layer.donor.has_value(); });
  return static_cast<size_t>(sharer - layers.begin());
}

std::string_view to_string(SupportTier tier) {
  return tier == SupportTier::kTargeted ? "targeted" : "generic";
}

std::optional<Quantization> QuantizationConfig::of(
    std::string_view module_path) const {
  const auto it = overrides.find(module_path);
  return it == overrides.end() ? everywhere : it->second;
}

Result<ModelConfig> parse_model_config(
    std::string_view json,
    const std::string& origin) {
  INGLE_ASSIGN_OR_RETURN(const Json root, parse_strict_json(json, origin));
  if (!root.is_object()) {
    return Status::corruption(origin + ": not a JSON object");
  }
  FieldReader whole(root, origin);
  ModelConfig config;
  config.model_type = whole.optional_string("model_type").value_or("");
  INGLE_RETURN_IF_ERROR(whole.status());
  INGLE_ASSIGN_OR_RETURN(
      const Family* family, family_of(config.model_type, origin));
  // Of a model that also sees, the part that reads and writes.
  const Json* part = whole.find("text_config");
  const std::string where = part == nullptr ? origin : origin + ": text_config";
  if (part != nullptr && !part->is_object()) {
    return Status::corruption(where + " has to be an object");
  }
  Json text = Json::parse(family->usual);
  if (const Json* size = whole.find("vocab_size")) {
    text["vocab_size"] = *size; // some have it beside the part
  }
  text.update(part == nullptr ? root : *part);
  FieldReader reader(text, where);
  if (family->is_wrapper && part != nullptr) {
    const auto type = reader.optional_string("model_type");
    INGLE_RETURN_IF_ERROR(reader.status());
    if (type) {
      INGLE_ASSIGN_OR_RETURN(family, family_of(*type, where));
    }
  }
  config.tier = family->tier;

  config.hidden_size = reader.size("hidden_size");
  config.intermediate_size =
      reader.optional_size("intermediate_size").value_or(0);
  config.num_hidden_layers = reader.size("num_hidden_layers", kMaxLayers);
  config.num_attention_heads = reader.size("num_attention_heads");
  config.num_key_value_heads = reader.optional_size("num_key_value_heads")
                                   .value_or(config.num_attention_heads);
  config.head_dim =
      reader.optional_size("head_dim")
          .value_or(
              std::max(1, config.hidden_size / config.num_attention_heads));
  config.vocab_size = reader.size("vocab_size", kMaxVocabulary);
  config.max_position_embeddings =
      reader.size("max_position_embeddings", kMaxContext);
  const NormEps& eps = family->norm_eps;
  config.rms_norm_eps = eps.usual
      ? reader.optional_number(eps.key, kTiny, 1).value_or(*eps.usual)
      : reader.number(eps.key, kTiny, 1);
  INGLE_RETURN_IF_ERROR(read_said_twice(reader, whole, config));
  INGLE_ASSIGN_OR_RETURN(
      const RopeConfig rope,
      read_rope(reader, where, config.max_position_embeddings, family->rope));
  config.ropes = {rope};
  config.layers.resize(static_cast<size_t>(config.num_hidden_layers));
  if (!family->takes_layer_types) {
    INGLE_RETURN_IF_ERROR(refuse_windows(reader, where, config));
  }
  INGLE_RETURN_IF_ERROR(family->read(reader, where, config));
  if (config.experts.beside_mlp ||
      !std::ranges::all_of(config.layers, &LayerConfig::has_experts)) {
    config.intermediate_size = reader.size("intermediate_size");
  }
  INGLE_RETURN_IF_ERROR(reader.status());
  INGLE_RETURN_IF_ERROR(check_heads(
      config.num_attention_heads,
      {"num_key_value_heads", config.num_key_value_heads},
      {"head_dim", config.head_dim},
      where));
  INGLE_RETURN_IF_ERROR(check_ropes(config, where));
  if (config.attention_scale == 0) {
    config.attention_scale = 1 / std::sqrt(static_cast<float>(config.head_dim));
  }
  INGLE_ASSIGN_OR_RETURN(
      config.quantization, parse_quantization_config(root, origin));
  return config;
}

} // namespace ingle
