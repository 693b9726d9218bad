#include "cli/model_argument.h"

#include <algorithm>

#include "cli/default_model.h"

namespace ingle {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

bool is_folder(FileSystem& fs, const std::string& path) {
  const auto info = fs.stat(path);
  return info.is_ok() && info->is_directory;
}

// "models/x/" -> "models/x", so that the folder has a name.
std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
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
        "'" + argument + "' matches several models: " + join(matches) +
        "; say more of the name");
  }
  return Status::not_found(
      "there is no folder and no imported model '" + argument + "'; " +
      (names.empty() ? "none is imported yet: run ingle get"
                     : "imported are: " + join(names)));
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
    if (!is_folder(env.fs, folder)) {
      return Status::not_found(
          "the default model is not there yet (" + folder +
          "): run ingle get, or name a model with --model");
    }
    return folder;
  }
  if (is_folder(env.fs, argument)) {
    return without_trailing_slashes(argument);
  }
  return resolve_name(env, argument);
}

} // namespace ingle
