#include "model/kv_config.h"

#include "kernels/kv_layout.h"
#include "model/field_reader.h"
#include "weights/strict_json.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

bool is_group_size(int size) {
  return size == 32 || size == 64 || size == 128;
}

// `where` says who asked for it.
Status check(const KvQuantization& kv, int head_dim, const std::string& where) {
  if (kv.bits != 8 && kv.bits != 4) {
    return Status::corruption(
        where + ": keys and values have 8 or 4 bits, not " +
        std::to_string(kv.bits));
  }
  if (!is_group_size(kv.group_size)) {
    return Status::corruption(
        where + ": keys and values have groups of 32, 64 or 128, not of " +
        std::to_string(kv.group_size));
  }
  if (head_dim % kv.group_size != 0 || head_dim > kMaxQuantizedDim) {
    return Status::unsupported(
        where + ": the model's heads of " + std::to_string(head_dim) +
        " elements can't be held in groups of " +
        std::to_string(kv.group_size));
  }
  return Status::ok();
}

Status read_entry(
    const Json& entry,
    const ModelConfig& config,
    const std::string& where,
    KvQuantizations& layers) {
  if (!entry.is_object()) {
    return Status::corruption(where + ": not an object");
  }
  FieldReader reader(entry, where);
  const auto layer = reader.optional_count(
      "layer_idx", static_cast<int>(config.cache_count()) - 1);
  const KvQuantization kv{
      reader.size("bits"), reader.optional_size("group_size").value_or(64)};
  INGLE_RETURN_IF_ERROR(reader.status());
  if (!layer) {
    return Status::corruption(where + ": layer_idx is missing");
  }
  const auto at = static_cast<size_t>(*layer);
  if (config.layers[at].is_recurrent) {
    return Status::ok(); // it has no keys and values
  }
  INGLE_RETURN_IF_ERROR(
      check(kv, config.head_dim_of(config.layers[at]), where));
  auto& kept = layers[at];
  if (kept) {
    return Status::corruption(
        where + ": layer " + std::to_string(*layer) + " is there twice");
  }
  kept = kv;
  return Status::ok();
}

Result<KvQuantizations> read_kv_config(
    std::string_view text,
    const std::string& path,
    const ModelConfig& config) {
  KvQuantizations layers(config.layers.size());
  INGLE_ASSIGN_OR_RETURN(const Json list, parse_strict_json(text, path));
  if (!list.is_array()) {
    return Status::corruption(path + ": not a list of layers");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    INGLE_RETURN_IF_ERROR(read_entry(
        list[i], config, path + ": [" + std::to_string(i) + "]", layers));
  }
  return layers;
}

} // namespace

Result<KvQuantizations> kv_quantizations(
    FileSystem& fs,
    const std::string& folder,
    const ModelConfig& config,
    const RunOptions& options) {
  const size_t layers = config.layers.size();
  switch (options.kv_quant) {
    case KvQuant::kOff:
      return KvQuantizations(layers);
    case KvQuant::kUniform:
      for (const LayerConfig& layer : config.layers) {
        INGLE_RETURN_IF_ERROR(
            check(options.kv, config.head_dim_of(layer), "--kv-quant"));
      }
      return KvQuantizations(layers, options.kv);
    case KvQuant::kConfig:
      break;
  }
  const std::string path = join_path(folder, "kv_config.json");
  const Result<std::string> text = fs.read(path);
  if (!text.is_ok() && text.status().code() == StatusCode::kNotFound) {
    return KvQuantizations(layers);
  }
  INGLE_RETURN_IF_ERROR(text.status());
  return read_kv_config(*text, path, config);
}

} // namespace ingle
