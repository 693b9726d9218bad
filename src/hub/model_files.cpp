#include "hub/model_files.h"

#include <algorithm>
#include <array>

#include "hub/names.h"
#include "weights/strict_json.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

// What ingle reads, and what the ecosystem's tools make the same model of.
constexpr std::array<std::string_view, 14> kTextFiles = {
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    kConfigFile,
    "generation_config.json",
    "kv_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt"};

} // namespace

std::vector<std::string> text_files_of(const std::set<std::string>& listed) {
  std::vector<std::string> files;
  for (const std::string_view name : kTextFiles) {
    if (listed.count(std::string(name)) != 0) {
      files.emplace_back(name);
    }
  }
  return files;
}

Result<std::set<std::string>> shards_of_index(
    std::string_view json,
    const std::string& origin) {
  INGLE_ASSIGN_OR_RETURN(
      const nlohmann::json root, parse_strict_json(json, origin));
  const auto map = root.find("weight_map");
  if (map == root.end() || !map->is_object() || map->empty()) {
    return Status::corruption(
        origin + ": 'weight_map' has to be an object that names the weights");
  }
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) {
      return Status::corruption(
          origin + ": the file of " + quote_name(tensor) +
          " has to be a string");
    }
    const auto& name = shard.get_ref<const std::string&>();
    // As they are read: WeightFolder looks in no other folder.
    if (!is_safe_path(name) || name.find('/') != std::string::npos ||
        !name.ends_with(".safetensors")) {
      return Status::corruption(
          origin + ": " + quote_name(name) +
          " is not the name of a safetensors file in the model's folder");
    }
    shards.insert(name);
  }
  return shards;
}

} // namespace ingle
