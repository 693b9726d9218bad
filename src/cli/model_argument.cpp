#include "cli/model_argument.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "cli/console.h"
#include "cli/default_model.h"

namespace ingle {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

bool is_folder(FileSystem& fs, const std::string& path) {
  const auto info = fs.stat(path);
  return info.is_ok() && info->is_directory;
}

// "." and "models/x/" have no name; their absolute path has.
std::string absolute(const std::string& path) {
  std::error_code error;
  const auto canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

Result<std::string> resolve_name(
    const Environment& env,
    const std::string& argument) {
  INGLE_ASSIGN_OR_RETURN(const auto names, list_models(env));
  std::vector<std::string> matches;
  for (const auto& name : names) {
    if (name == argument) {
      return join_path(models_folder(env), name);
    }
    if (lower(name).find(lower(argument)) != std::string::npos) {
      matches.push_back(name);
    }
  }
  if (matches.size() == 1) {
    return join_path(models_folder(env), matches.front());
  }
  if (matches.size() > 1) {
    return Status::invalid_request(
        "'" + argument + "' matches several models: " + join(matches, ", ") +
        "; say more of the name");
  }
  return Status::not_found(
      "there is no folder and no imported model '" + argument + "'; " +
      (names.empty() ? "none is imported yet: run ingle get"
                     : "imported are: " + join(names, ", ")));
}

} // namespace

Result<std::vector<std::string>> list_models(const Environment& env) {
  const std::string folder = models_folder(env);
  if (!is_folder(env.fs, folder)) {
    return std::vector<std::string>();
  }
  INGLE_ASSIGN_OR_RETURN(auto names, env.fs.list(folder));
  std::erase_if(names, [&](const std::string& name) {
    return name.starts_with(".") ||
        !env.fs.exists(join_path(join_path(folder, name), "config.json"));
  });
  return names;
}

Result<std::string> resolve_model(
    const Environment& env,
    const std::string& argument) {
  if (argument.empty()) {
    const std::string folder =
        join_path(models_folder(env), kDefaultModel.name);
    if (!env.fs.exists(join_path(folder, "config.json"))) {
      return Status::not_found(
          "the default model is not there yet (" + folder +
          "): run ingle get, or name a model with --model");
    }
    return folder;
  }
  if (is_folder(env.fs, argument)) {
    return absolute(argument);
  }
  return resolve_name(env, argument);
}

} // namespace ingle
