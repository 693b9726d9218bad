#include "cli/known_models.h"

#include <algorithm>
#include <cctype>

#include "cli/console.h"
#include "hub/hub_cache.h"
#include "hub/names.h"

namespace ingle {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

Status add_imported(const Environment& env, std::vector<KnownModel>& models) {
  const std::string folder = models_folder(env);
  const auto info = env.fs.stat(folder);
  if (!info.is_ok() || !info->is_directory) {
    return Status::ok();
  }
  INGLE_ASSIGN_OR_RETURN(const auto names, env.fs.list(folder));
  for (const std::string& name : names) {
    const std::string path = join_path(folder, name);
    if (!name.starts_with(".") &&
        env.fs.exists(join_path(path, "config.json"))) {
      models.push_back({name, path, false});
    }
  }
  return Status::ok();
}

Status add_cached(const Environment& env, std::vector<KnownModel>& models) {
  if (env.hub.cache.empty()) {
    return Status::ok();
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto names, list_repo_names(env.fs, env.hub.cache));
  for (const std::string& name : names) {
    // One that can't be read must not hide the others.
    const auto repo = read_repo(env.fs, env.hub.cache, name);
    const auto commit =
        repo.is_ok() ? repo->canonical_snapshot() : std::nullopt;
    models.push_back(
        {name, commit ? repo->snapshot_folder(*commit) : "", true});
  }
  return Status::ok();
}

} // namespace

Result<std::vector<KnownModel>> list_models(const Environment& env) {
  std::vector<KnownModel> models;
  INGLE_RETURN_IF_ERROR(add_imported(env, models));
  INGLE_RETURN_IF_ERROR(add_cached(env, models));
  return models;
}

std::string name_of_model(const std::string& folder) {
  return repo_of_snapshot(folder).value_or(base_name(folder));
}

Result<std::optional<KnownModel>> find_by_name(
    const std::vector<KnownModel>& models,
    const std::string& name) {
  std::vector<KnownModel> found;
  for (const KnownModel& model : models) {
    if (model.name == name) {
      return std::optional(model);
    }
    const std::string known = lower(model.name);
    if (known == lower(name) || base_name(known) == lower(name)) {
      found.push_back(model);
    }
  }
  if (found.size() > 1) {
    return ambiguous(name, found);
  }
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::vector<KnownModel> find_by_part(
    const std::vector<KnownModel>& models,
    const std::string& part) {
  std::vector<KnownModel> found;
  std::ranges::copy_if(
      models, std::back_inserter(found), [&](const KnownModel& model) {
        return lower(model.name).find(lower(part)) != std::string::npos;
      });
  return found;
}

std::string names_of(const std::vector<KnownModel>& models) {
  std::vector<std::string> names;
  for (const KnownModel& model : models) {
    names.push_back(model.name);
  }
  return join(names, ", ");
}

Status ambiguous(
    const std::string& argument,
    const std::vector<KnownModel>& candidates) {
  return Status::invalid_request(
      "'" + argument + "' matches several models: " + names_of(candidates) +
      "; say more of the name");
}

} // namespace ingle
