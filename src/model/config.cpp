#include "model/config.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace ingle {
namespace {

using Json = nlohmann::json;

// Far above any model, far below what could overflow a product of three.
constexpr int64_t kMaxSize = int64_t{1} << 20;
constexpr int64_t kMaxContext = int64_t{1} << 30;

// Reads fields of one object and keeps the first failure, so that a list of
// reads stays a list.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string origin)
      : object_(object), origin_(std::move(origin)) {}

  const Status& status() const {
    return status_;
  }
  void fail(Status status) {
    if (status_.is_ok()) {
      status_ = std::move(status).with_context(origin_);
    }
  }

  // The field, or null where it is absent or JSON null.
  const Json* find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  int size(const char* key, int64_t limit = kMaxSize) {
    const Json* field = find(key);
    if (field == nullptr) {
      fail(Status::corruption(
          std::string("the field '") + key +
          "' is missing (a positive integer is expected)"));
      return 1;
    }
    return checked_size(key, *field, limit);
  }
  int size_or(const char* key, int fallback) {
    const Json* field = find(key);
    return field ? checked_size(key, *field, kMaxSize) : fallback;
  }

  float number(const char* key) {
    const Json* field = find(key);
    if (field == nullptr) {
      fail(Status::corruption(
          std::string("the field '") + key +
          "' is missing (a number is expected)"));
      return 1;
    }
    return checked_number(key, *field);
  }
  float number_or(const char* key, float fallback) {
    const Json* field = find(key);
    return field ? checked_number(key, *field) : fallback;
  }

  bool boolean_or(const char* key, bool fallback) {
    const Json* field = find(key);
    if (field == nullptr) {
      return fallback;
    }
    if (!field->is_boolean()) {
      wrong_type(key, "true or false");
      return fallback;
    }
    return field->get<bool>();
  }

  std::string string_or(const char* key, std::string fallback) {
    const Json* field = find(key);
    if (field == nullptr) {
      return fallback;
    }
    if (!field->is_string()) {
      wrong_type(key, "a string");
      return fallback;
    }
    return field->get<std::string>();
  }

  void wrong_type(const char* key, const char* expected) {
    fail(Status::corruption(
        std::string("the field '") + key + "' has to be " + expected));
  }

 private:
  int checked_size(const char* key, const Json& field, int64_t limit) {
    if (!field.is_number_integer() || field.get<int64_t>() < 1 ||
        field.get<int64_t>() > limit) {
      fail(Status::corruption(
          std::string("the field '") + key +
          "' has to be an integer from 1 to " + std::to_string(limit)));
      return 1;
    }
    return static_cast<int>(field.get<int64_t>());
  }

  float checked_number(const char* key, const Json& field) {
    if (!field.is_number() || !std::isfinite(field.get<float>())) {
      wrong_type(key, "a number");
      return 1;
    }
    return field.get<float>();
  }

  const Json& object_;
  std::string origin_;
  Status status_;
};

Result<Quantization> parse_quantization(
    const Json& object,
    const std::string& origin) {
  FieldReader reader(object, origin);
  const Quantization quantization{
      reader.size("group_size"), reader.size("bits")};
  INGLE_RETURN_IF_ERROR(reader.status());
  const std::string mode = reader.string_or("mode", "affine");
  INGLE_RETURN_IF_ERROR(reader.status());
  constexpr int kBits[] = {2, 3, 4, 5, 6, 8};
  constexpr int kGroups[] = {32, 64, 128};
  const bool known = mode == "affine" &&
      std::count(std::begin(kBits), std::end(kBits), quantization.bits) != 0 &&
      std::count(
          std::begin(kGroups), std::end(kGroups), quantization.group_size) != 0;
  if (!known) {
    return Status::unsupported(
        origin + ": quantisation mode '" + mode + "' with " +
        std::to_string(quantization.bits) + " bits in groups of " +
        std::to_string(quantization.group_size) +
        " is not supported; affine with 2, 3, 4, 5, 6 or 8 bits in groups of "
        "32, 64 or 128 is");
  }
  return quantization;
}

Result<QuantizationConfig> parse_quantization_config(
    const Json& root,
    const std::string& origin) {
  QuantizationConfig config;
  const Json* object = nullptr;
  for (const char* key : {"quantization", "quantization_config"}) {
    const auto it = root.find(key);
    if (object == nullptr && it != root.end() && !it->is_null()) {
      object = &*it;
    }
  }
  if (object == nullptr) {
    return config;
  }
  const std::string where = origin + ": quantization";
  if (!object->is_object()) {
    return Status::corruption(where + " has to be an object");
  }
  INGLE_ASSIGN_OR_RETURN(config.everywhere, parse_quantization(*object, where));
  for (const auto& [path, value] : object->items()) {
    if (value.is_boolean() && !value.get<bool>()) {
      config.overrides[path] = std::nullopt;
    } else if (value.is_object()) {
      INGLE_ASSIGN_OR_RETURN(
          config.overrides[path],
          parse_quantization(value, where + "['" + path + "']"));
    }
  }
  return config;
}

Status check_rope(const RopeConfig& rope, const std::string& where) {
  if (rope.theta <= 0 || rope.factor <= 0 ||
      rope.low_freq_factor >= rope.high_freq_factor) {
    return Status::corruption(
        where +
        ": rope_theta and the rope factors have to be positive, and "
        "low_freq_factor below high_freq_factor");
  }
  return Status::ok();
}

Result<RopeConfig> parse_rope(const Json& root, const std::string& origin) {
  FieldReader reader(root, origin);
  RopeConfig rope;
  rope.theta = reader.number_or("rope_theta", rope.theta);
  rope.traditional = reader.boolean_or("rope_traditional", false);
  INGLE_RETURN_IF_ERROR(reader.status());

  // Newer configs say rope_parameters, which holds rope_theta as well.
  const char* key =
      reader.find("rope_scaling") ? "rope_scaling" : "rope_parameters";
  const Json* object = reader.find(key);
  if (object == nullptr) {
    INGLE_RETURN_IF_ERROR(check_rope(rope, origin));
    return rope;
  }
  const std::string where = origin + ": " + key;
  if (!object->is_object()) {
    return Status::corruption(where + " has to be an object");
  }
  FieldReader scaling(*object, where);
  rope.theta = scaling.number_or("rope_theta", rope.theta);
  const std::string type =
      scaling.string_or("rope_type", scaling.string_or("type", "default"));
  if (type == "linear") {
    rope.kind = RopeKind::kLinear;
    rope.factor = scaling.number("factor");
  } else if (type == "llama3") {
    rope.kind = RopeKind::kLlama3;
    rope.factor = scaling.number("factor");
    rope.low_freq_factor = scaling.number_or("low_freq_factor", 1);
    rope.high_freq_factor = scaling.number_or("high_freq_factor", 4);
    rope.original_context =
        scaling.size_or("original_max_position_embeddings", 8192);
  } else if (type != "default") {
    return Status::unsupported(
        where + ": the type '" + type +
        "' is not supported; default, linear and llama3 are");
  }
  INGLE_RETURN_IF_ERROR(scaling.status());
  INGLE_RETURN_IF_ERROR(check_rope(rope, where));
  return rope;
}

Result<std::vector<TokenId>> parse_eos(
    const Json& root,
    const std::string& origin) {
  std::vector<TokenId> eos;
  const auto it = root.find("eos_token_id");
  if (it == root.end() || it->is_null()) {
    return eos;
  }
  const Json ids = it->is_array() ? *it : Json::array({*it});
  for (const auto& id : ids) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() > kMaxContext) {
      return Status::corruption(
          origin +
          ": the field 'eos_token_id' has to be a token id or a list "
          "of them");
    }
    eos.push_back(static_cast<TokenId>(id.get<int64_t>()));
  }
  return eos;
}

// A drafter only proposes tokens for another model.
bool is_drafter(std::string_view model_type) {
  return model_type.ends_with("_assistant");
}

Status check_model_type(
    const std::string& model_type,
    const std::string& origin) {
  if (model_type.empty()) {
    return Status::corruption(
        origin + ": the field 'model_type' is missing (a string is expected)");
  }
  if (is_drafter(model_type)) {
    return Status::unsupported(
        origin + ": model_type '" + model_type +
        "' is a drafter for another model and can't be served by itself");
  }
  if (model_type != "llama") {
    return Status::unsupported(
        origin + ": model_type '" + model_type +
        "' is not supported; this version runs: llama");
  }
  return Status::ok();
}

Status check_layer_types(const Json& root, const std::string& origin) {
  const auto it = root.find("layer_types");
  if (it == root.end() || !it->is_array()) {
    return Status::ok();
  }
  for (const auto& type : *it) {
    if (type != "full_attention") {
      return Status::unsupported(
          origin + ": layer type " + type.dump() +
          " is not supported; full_attention is");
    }
  }
  return Status::ok();
}

Status check_heads(const ModelConfig& config, const std::string& origin) {
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    return Status::corruption(
        origin + ": num_attention_heads (" +
        std::to_string(config.num_attention_heads) +
        ") is not a multiple of num_key_value_heads (" +
        std::to_string(config.num_key_value_heads) + ")");
  }
  if (config.head_dim % 2 != 0) {
    return Status::corruption(
        origin + ": head_dim (" + std::to_string(config.head_dim) +
        ") has to be even");
  }
  return Status::ok();
}

} // namespace

std::optional<Quantization> QuantizationConfig::of(
    std::string_view module_path) const {
  const auto it = overrides.find(module_path);
  return it == overrides.end() ? everywhere : it->second;
}

Result<ModelConfig> parse_model_config(
    std::string_view json,
    const std::string& origin) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    return Status::corruption(origin + ": not a JSON object");
  }
  FieldReader reader(root, origin);
  ModelConfig config;
  config.model_type = reader.string_or("model_type", "");
  INGLE_RETURN_IF_ERROR(reader.status());
  INGLE_RETURN_IF_ERROR(check_model_type(config.model_type, origin));
  INGLE_RETURN_IF_ERROR(check_layer_types(root, origin));

  config.hidden_size = reader.size("hidden_size");
  config.intermediate_size = reader.size("intermediate_size");
  config.num_hidden_layers = reader.size("num_hidden_layers");
  config.num_attention_heads = reader.size("num_attention_heads");
  config.num_key_value_heads =
      reader.size_or("num_key_value_heads", config.num_attention_heads);
  config.head_dim = reader.size_or(
      "head_dim", std::max(1, config.hidden_size / config.num_attention_heads));
  config.vocab_size = reader.size("vocab_size", kMaxSize * 4);
  config.max_position_embeddings =
      reader.size("max_position_embeddings", kMaxContext);
  config.rms_norm_eps = reader.number("rms_norm_eps");
  config.attention_bias = reader.boolean_or("attention_bias", false);
  config.mlp_bias = reader.boolean_or("mlp_bias", false);
  config.tie_word_embeddings = reader.boolean_or("tie_word_embeddings", true);
  INGLE_RETURN_IF_ERROR(reader.status());
  INGLE_RETURN_IF_ERROR(check_heads(config, origin));
  INGLE_ASSIGN_OR_RETURN(config.rope, parse_rope(root, origin));
  INGLE_ASSIGN_OR_RETURN(
      config.quantization, parse_quantization_config(root, origin));
  INGLE_ASSIGN_OR_RETURN(config.eos, parse_eos(root, origin));
  return config;
}

} // namespace ingle
