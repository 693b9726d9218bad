#include "model/lora_config.h"

#include <cmath>
#include <optional>

#include "model/field_reader.h"
#include "weights/strict_json.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRank = 1 << 14;
constexpr double kMaxScale = 1e6;

struct File {
  std::string path;
  Json json;
};

Result<File> read_config(FileSystem& fs, const std::string& folder) {
  for (const char* name : {"optiq_lora_config.json", "adapter_config.json"}) {
    std::string path = join_path(folder, name);
    const auto text = fs.read(path);
    if (text.status().code() == StatusCode::kNotFound) {
      continue;
    }
    INGLE_RETURN_IF_ERROR(text.status());
    INGLE_ASSIGN_OR_RETURN(Json json, parse_strict_json(*text, path));
    if (!json.is_object()) {
      return Status::corruption(path + ": not a JSON object");
    }
    return File{std::move(path), std::move(json)};
  }
  return Status::not_found(
      folder +
      ": has no adapter_config.json, which says how its weights are scaled");
}

// Where the field says anything but what changes nothing.
Status refuse(
    const File& file,
    const char* field,
    std::initializer_list<Json> harmless,
    const char* what) {
  const auto found = file.json.find(field);
  if (found == file.json.end() || found->is_null()) {
    return Status::ok();
  }
  for (const Json& each : harmless) {
    if (*found == each) {
      return Status::ok();
    }
  }
  return Status::unsupported(
      file.path + ": " + field + " asks for " + what +
      ", which is not supported");
}

Status refuse_other_methods(const File& file) {
  INGLE_RETURN_IF_ERROR(
      refuse(file, "peft_type", {"LORA"}, "another method than LoRA"));
  INGLE_RETURN_IF_ERROR(
      refuse(file, "fine_tune_type", {"lora"}, "another method than LoRA"));
  INGLE_RETURN_IF_ERROR(refuse(file, "use_dora", {false}, "DoRA"));
  INGLE_RETURN_IF_ERROR(
      refuse(file, "fan_in_fan_out", {false}, "weights that stand transposed"));
  INGLE_RETURN_IF_ERROR(
      refuse(file, "bias", {"none", false}, "biases beside the adapter"));
  return refuse(
      file,
      "modules_to_save",
      {Json::array()},
      "whole modules beside the adapter");
}

// PEFT takes a key for the end of a module's path, or for a pattern of it: only
// the first can be read here.
Result<std::map<std::string, float>> read_pattern(
    const File& file,
    const char* field) {
  std::map<std::string, float> values;
  const auto found = file.json.find(field);
  if (found == file.json.end() || found->is_null()) {
    return values;
  }
  if (!found->is_object()) {
    return Status::corruption(
        file.path + ": the field '" + field + "' has to be an object");
  }
  for (const auto& [key, value] : found->items()) {
    if (key.find_first_of("*+?[](){}|^$\\") != std::string::npos) {
      return Status::unsupported(
          file.path + ": " + field + " has the pattern " + quote_name(key) +
          ", and only names of modules are supported there");
    }
    FieldReader reader(*found, file.path + ": " + field);
    values[key] = reader.number(key.c_str(), 0, kMaxScale);
    INGLE_RETURN_IF_ERROR(reader.status());
  }
  return values;
}

// The longest name that the module ends with.
std::optional<float> find_in(
    const std::map<std::string, float>& values,
    const std::string& module) {
  std::optional<float> found;
  size_t longest = 0;
  for (const auto& [name, value] : values) {
    const bool matches = module == name || module.ends_with("." + name);
    if (matches && name.size() >= longest) {
      longest = name.size();
      found = value;
    }
  }
  return found;
}

} // namespace

Result<LoraConfig> LoraConfig::read(FileSystem& fs, const std::string& folder) {
  INGLE_ASSIGN_OR_RETURN(const File file, read_config(fs, folder));
  INGLE_RETURN_IF_ERROR(refuse_other_methods(file));
  LoraConfig config;
  config.origin_ = file.path;
  FieldReader fields(file.json, file.path);
  const Json* parameters = fields.find("lora_parameters");
  config.has_root_ = fields.optional_bool("rs_lora").value_or(false) ||
      fields.optional_bool("use_rslora").value_or(false);
  if (parameters != nullptr) {
    if (!parameters->is_object()) {
      return Status::corruption(
          file.path + ": the field 'lora_parameters' has to be an object");
    }
    FieldReader own(*parameters, file.path + ": lora_parameters");
    config.scale_ =
        own.optional_number("scale", -kMaxScale, kMaxScale).value_or(20);
    config.rank_ = own.optional_count("rank", kMaxRank).value_or(0);
    INGLE_RETURN_IF_ERROR(own.status());
  } else {
    config.is_peft_ = true;
    config.alpha_ = fields.optional_number("lora_alpha", -kMaxScale, kMaxScale)
                        .value_or(16);
    config.rank_ = fields.optional_size("r").value_or(8);
    INGLE_ASSIGN_OR_RETURN(config.alphas_, read_pattern(file, "alpha_pattern"));
    INGLE_ASSIGN_OR_RETURN(config.ranks_, read_pattern(file, "rank_pattern"));
  }
  // As the trainers of the ecosystem have it, and mlx-lm.
  for (const char* key : {"base_model_name_or_path", "source_model", "model"}) {
    const auto name = fields.optional_string(key);
    config.base_model_ =
        config.base_model_.empty() ? name.value_or("") : config.base_model_;
  }
  INGLE_RETURN_IF_ERROR(fields.status());
  return config;
}

Result<float> LoraConfig::scale_of(const std::string& module, int rank) const {
  const auto width = static_cast<float>(rank);
  if (!is_peft_) {
    return has_root_ ? scale_ / std::sqrt(width) : scale_;
  }
  const float said =
      find_in(ranks_, module).value_or(static_cast<float>(rank_));
  if (said != width) {
    return Status::corruption(
        origin_ + ": says that " + quote_name(module) + " has the rank " +
        std::to_string(static_cast<int>(said)) +
        ", where its weights have the rank " + std::to_string(rank));
  }
  const float alpha = find_in(alphas_, module).value_or(alpha_);
  return alpha / (has_root_ ? std::sqrt(width) : width);
}

float LoraConfig::scale() const {
  if (!is_peft_) {
    return has_root_ && rank_ > 0
        ? scale_ / std::sqrt(static_cast<float>(rank_))
        : scale_;
  }
  const auto width = static_cast<float>(rank_);
  return alpha_ / (has_root_ ? std::sqrt(width) : width);
}

} // namespace ingle
