#include "cli/model_summary.h"

#include "model/config.h"
#include "weights/safetensors_reader.h"
#include "weights/strict_json.h"

namespace ingle {
namespace {

std::string quantization_of(const QuantizationConfig& config) {
  if (!config.everywhere) {
    return "dense";
  }
  std::string text = std::to_string(config.everywhere->bits) + "-bit";
  for (const auto& [path, other] : config.overrides) {
    if (other && other->bits != config.everywhere->bits) {
      return text + " and others";
    }
  }
  return text;
}

// Also of a family that ingle does not run.
std::string family_in(std::string_view json, const std::string& origin) {
  const auto root = parse_strict_json(json, origin);
  if (!root.is_ok()) {
    return {};
  }
  const auto type = root->find("model_type");
  return type != root->end() && type->is_string() ? type->get<std::string>()
                                                  : std::string();
}

uint64_t bytes_in(FileSystem& fs, const std::string& folder) {
  uint64_t bytes = 0;
  const auto names = fs.list(folder);
  if (names.is_ok()) {
    for (const std::string& name : *names) {
      const auto info = fs.stat(join_path(folder, name));
      bytes += info.is_ok() && !info->is_directory ? info->size : 0;
    }
  }
  return bytes;
}

Status
read_config(FileSystem& fs, const std::string& folder, ModelSummary& summary) {
  const std::string path = join_path(folder, "config.json");
  INGLE_ASSIGN_OR_RETURN(const std::string json, fs.read(path));
  summary.family = family_in(json, path);
  INGLE_ASSIGN_OR_RETURN(
      const ModelConfig config, parse_model_config(json, path));
  summary.tier = to_string(config.tier);
  summary.quantization = quantization_of(config.quantization);
  summary.context = config.max_position_embeddings;
  return WeightFolder::open(fs, folder).status();
}

} // namespace

ModelSummary summarize_model(FileSystem& fs, const std::string& folder) {
  ModelSummary summary;
  summary.bytes = bytes_in(fs, folder);
  const Status status = read_config(fs, folder, summary);
  if (!status.is_ok()) {
    summary.tier = "none";
    summary.problem = status.message();
  }
  return summary;
}

} // namespace ingle
