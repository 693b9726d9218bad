// Gemma 4: layers with a window and layers that see all positions differ in
// their heads and ropes; the last layers may attend to the keys of earlier
// ones; small models have inputs of each layer, and one has experts beside its
// MLPs.
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "model/families/families.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

Status refuse(
    const std::string& what,
    const std::string& origin,
    const ModelConfig& config) {
  return Status::unsupported(
      origin + ": " + what + " is not supported for " + config.model_type);
}

Status refuse_variants(
    FieldReader& fields,
    const std::string& origin,
    const ModelConfig& config) {
  if (config.activation != Activation::kGeluTanh) {
    return refuse(
        "hidden_activation other than gelu_pytorch_tanh", origin, config);
  }
  if (fields.optional_bool("attention_bias").value_or(false)) {
    return refuse("attention_bias", origin, config);
  }
  // Of images it may be: there are none.
  const std::string both_ways =
      fields.optional_string("use_bidirectional_attention").value_or("vision");
  if (both_ways != "vision") {
    return refuse(
        "use_bidirectional_attention other than \"vision\"", origin, config);
  }
  return Status::ok();
}

// Of attention, in one layer.
struct Heads {
  int dim = 0;
  int key_value = 0; // how many

  bool operator==(const Heads&) const = default;
};

// Where a key of per_layer_config is "5" or "05": 5.
std::optional<size_t> layer_of(std::string_view key, size_t count) {
  size_t layer = 0;
  const char* const end = key.data() + key.size();
  const auto [at, error] = std::from_chars(key.data(), end, layer);
  return error == std::errc() && at == end && layer < count
      ? std::optional(layer)
      : std::nullopt;
}

// What one layer's fields say that the model's don't.
Status read_own_heads(
    const Json& object,
    const std::string& where,
    int attention_heads,
    Heads& heads) {
  for (const auto& [key, value] : object.items()) {
    if (key != "head_dim" && key != "num_key_value_heads" && !value.is_null()) {
      return Status::unsupported(
          where + ": " + quote_name(key) +
          " is not supported; head_dim and num_key_value_heads are");
    }
  }
  FieldReader fields(object, where);
  heads.dim = fields.optional_size("head_dim").value_or(heads.dim);
  heads.key_value =
      fields.optional_size("num_key_value_heads").value_or(heads.key_value);
  INGLE_RETURN_IF_ERROR(fields.status());
  return check_heads(
      attention_heads,
      {"num_key_value_heads", heads.key_value},
      {"head_dim", heads.dim},
      where);
}

// Those of each layer, of which per_layer_config has the ones that differ from
// the model's.
Result<std::vector<Heads>> read_per_layer(
    const Json& object,
    const std::string& where,
    const ModelConfig& config) {
  if (!object.is_object()) {
    return Status::corruption(where + " has to be an object");
  }
  std::vector<Heads> all(
      config.layers.size(), {config.head_dim, config.num_key_value_heads});
  std::set<size_t> named;
  for (const auto& [key, value] : object.items()) {
    const std::string place = where + "[" + quote_name(key) + "]";
    const auto layer = layer_of(key, all.size());
    if (!layer || !named.insert(*layer).second) {
      return Status::corruption(
          place + ": keys have to be numbers of layers, 0 to " +
          std::to_string(all.size() - 1) + ", each once");
    }
    if (!value.is_object()) {
      return Status::corruption(place + " has to be an object");
    }
    INGLE_RETURN_IF_ERROR(
        read_own_heads(value, place, config.num_attention_heads, all[*layer]));
  }
  return all;
}

// Layers that share keys, and ropes, are of one kind. `full`: what the fields
// about layers without a window say, where they are there.
Status check_kinds(
    const std::vector<Heads>& all,
    const std::pair<std::optional<int>, std::optional<int>>& full,
    const std::string& origin,
    const ModelConfig& config) {
  std::optional<size_t> firsts[2]; // without a window, and with one
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_full = config.layers[i].window == 0;
    std::optional<size_t>& known = firsts[is_full ? 0 : 1];
    const size_t first = known.value_or(i);
    known = first;
    if (all[i] != all[first]) {
      return Status::unsupported(
          origin + ": per_layer_config has other heads for layer " +
          std::to_string(i) + " than for layer " + std::to_string(first) +
          "; these have to be the same, as both are of one type");
    }
    for (const auto& [key, said, found] :
         {std::tuple{"global_head_dim", full.first, all[i].dim},
          std::tuple{
              "num_global_key_value_heads", full.second, all[i].key_value}}) {
      if (is_full && said && *said != found) {
        return Status::corruption(
            origin + ": " + key + " (" + std::to_string(*said) +
            ") and per_layer_config (" + std::to_string(found) +
            ") differ about layer " + std::to_string(i) +
            "; keep the right one");
      }
    }
  }
  return Status::ok();
}

// The heads of each layer. Files say those of layers without a window in fields
// of their own, or, as transformers 5.15 and later writes them, layer by layer.
Result<std::vector<Heads>> read_heads(
    FieldReader& fields,
    const std::string& origin,
    bool values_are_keys,
    const ModelConfig& config) {
  const Json* own = fields.find("per_layer_config");
  const auto dim = own == nullptr ? fields.size("global_head_dim")
                                  : fields.optional_size("global_head_dim");
  const auto key_value = values_are_keys
      ? fields.optional_size("num_global_key_value_heads")
      : std::nullopt;
  INGLE_RETURN_IF_ERROR(fields.status());
  const Heads usual{config.head_dim, config.num_key_value_heads};
  if (own != nullptr) {
    INGLE_ASSIGN_OR_RETURN(
        auto all, read_per_layer(*own, origin + ": per_layer_config", config));
    INGLE_RETURN_IF_ERROR(check_kinds(all, {dim, key_value}, origin, config));
    return all;
  }
  const Heads full{*dim, key_value.value_or(usual.key_value)};
  INGLE_RETURN_IF_ERROR(check_heads(
      config.num_attention_heads,
      {"num_global_key_value_heads", full.key_value},
      {"global_head_dim", full.dim},
      origin));
  std::vector<Heads> all;
  for (const LayerConfig& layer : config.layers) {
    all.push_back(layer.window == 0 ? full : usual);
  }
  return all;
}

// Heads and ropes of both kinds of layers. The model's are those of windows.
Status read_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  INGLE_ASSIGN_OR_RETURN(
      const auto windowed, read_windowed_layers(fields, origin, config));
  for (const auto& [key, is_there] :
       {std::pair{"layer_types", windowed.has_value()},
        std::pair{
            "rope_parameters", fields.find("rope_parameters") != nullptr}}) {
    if (!is_there) {
      return Status::corruption(
          origin + ": the field '" + key + "' is missing");
    }
  }
  INGLE_ASSIGN_OR_RETURN(
      const RopeConfig rope,
      read_rope(
          fields,
          origin,
          config.max_position_embeddings,
          {},
          {.layers = "sliding_attention"}));
  set_windows(
      *windowed,
      fields.optional_size("sliding_window").value_or(512),
      rope,
      config);
  const bool values_are_keys =
      fields.optional_bool("attention_k_eq_v").value_or(false);
  INGLE_ASSIGN_OR_RETURN(
      const std::vector<Heads> heads,
      read_heads(fields, origin, values_are_keys, config));
  for (size_t i = 0; i < heads.size(); ++i) {
    LayerConfig& layer = config.layers[i];
    layer.head_dim = heads[i].dim;
    layer.num_key_value_heads = heads[i].key_value;
    layer.values_are_keys = values_are_keys && layer.window == 0;
  }
  return Status::ok();
}

// The last layers each attend to the last one before them all that is of their
// kind.
Status read_sharing(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  const auto count = static_cast<int>(config.layers.size());
  const auto shared = fields.optional_count("num_kv_shared_layers", count - 1);
  const bool is_wide =
      fields.optional_bool("use_double_wide_mlp").value_or(true);
  INGLE_RETURN_IF_ERROR(fields.status());
  if (!shared) {
    return Status::corruption(
        origin + ": the field 'num_kv_shared_layers' is missing");
  }
  const auto first = static_cast<size_t>(count - *shared);
  std::optional<size_t> donors[2]; // without a window, and with one
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerConfig& layer = config.layers[i];
    std::optional<size_t>& donor = donors[layer.window == 0 ? 0 : 1];
    if (i < first) {
      donor = i;
      continue;
    }
    if (!donor) {
      return Status::corruption(
          origin + ": num_kv_shared_layers (" + std::to_string(*shared) +
          ") leaves no layer whose keys layer " + std::to_string(i) +
          " could share");
    }
    layer.donor = donor;
    if (is_wide) {
      layer.intermediate_size = 2 * config.intermediate_size;
    }
  }
  return Status::ok();
}

Status read_layer_inputs(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  const int width =
      fields.optional_count("hidden_size_per_layer_input", kMaxModelSize)
          .value_or(0);
  const int vocab_size =
      fields.optional_count("vocab_size_per_layer_input", kMaxModelSize * 4)
          .value_or(config.vocab_size);
  INGLE_RETURN_IF_ERROR(fields.status());
  if (width == 0) {
    return Status::ok();
  }
  if (width > kMaxModelSize / config.num_hidden_layers) {
    return Status::corruption(
        origin + ": hidden_size_per_layer_input (" + std::to_string(width) +
        ") times num_hidden_layers (" +
        std::to_string(config.num_hidden_layers) + ") is over " +
        std::to_string(kMaxModelSize));
  }
  if (vocab_size < config.vocab_size) {
    return Status::unsupported(
        origin + ": vocab_size_per_layer_input (" + std::to_string(vocab_size) +
        ") below vocab_size (" + std::to_string(config.vocab_size) +
        ") is not supported");
  }
  config.layer_inputs = {width, vocab_size};
  return Status::ok();
}

// Softmax over the logits of the chosen experts is renormalised weights.
Status read_mixture(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  const bool has_experts =
      fields.optional_bool("enable_moe_block").value_or(false);
  if (!has_experts) {
    return fields.status();
  }
  ExpertsConfig& experts = config.experts;
  INGLE_RETURN_IF_ERROR(
      read_experts(fields, origin, {"num_experts", "top_k_experts"}, experts));
  experts.renormalises = true;
  experts.beside_mlp = true;
  experts.router = "router.proj";
  experts.stacked = "experts.switch_glu";
  for (LayerConfig& layer : config.layers) {
    layer.has_experts = true;
  }
  config.norms.after_mlp = "post_feedforward_layernorm_1"; // of the MLP alone
  config.wide_modules = {"router.proj"}; // a coarse one picks others
  return Status::ok();
}

} // namespace

Status read_gemma4(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  constexpr double kLow = 1e-6;
  constexpr double kHigh = 1e6;
  INGLE_RETURN_IF_ERROR(read_gemma_layers(fields, origin, config));
  INGLE_RETURN_IF_ERROR(refuse_variants(fields, origin, config));
  config.norms_add_one = false;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  config.tie_word_embeddings = config.tie_word_embeddings.value_or(true);
  config.qk_norm = QkNorm::kHead;
  config.norms_values = true;
  config.has_layer_scalars = true;
  config.attention_scale = 1;
  if (!fields.is_null("final_logit_softcapping")) { // null: none
    config.logits_soft_cap =
        fields.optional_number("final_logit_softcapping", kLow, kHigh)
            .value_or(30);
  }
  INGLE_RETURN_IF_ERROR(read_layers(fields, origin, config));
  INGLE_RETURN_IF_ERROR(read_sharing(fields, origin, config));
  INGLE_RETURN_IF_ERROR(read_mixture(fields, origin, config));
  return read_layer_inputs(fields, origin, config);
}

} // namespace ingle
