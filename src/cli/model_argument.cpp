#include "cli/model_argument.h"

#include <algorithm>
#include <filesystem>

#include "cli/auto_pick.h"
#include "cli/default_model.h"
#include "cli/known_models.h"
#include "cli/machine.h"
#include "cli/model_summary.h"
#include "engine/engine.h"
#include "hub/hub_cache.h"
#include "hub/names.h"
#include "model/memory_plan.h"

namespace ingle {
namespace {

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

Result<ModelPlace> place_of(const KnownModel& model) {
  if (model.folder.empty()) {
    return Status::not_found(
        model.name + ": nothing of it in the hub's cache can be used: run " +
        "ingle get " + model.name + ", or name one of its revisions as " +
        model.name + "@REVISION");
  }
  return ModelPlace{model.name, model.folder};
}

// "org/name@revision". Nothing: it names no model of the cache.
Result<std::optional<ModelPlace>> find_revision(
    const Environment& env,
    const std::string& argument) {
  if (argument.find('@') == std::string::npos) {
    return std::optional<ModelPlace>();
  }
  const auto model = parse_hub_model(argument);
  if (!model.is_ok()) {
    return std::optional<ModelPlace>();
  }
  INGLE_ASSIGN_OR_RETURN(
      const CachedRepo repo, read_repo(env.fs, env.hub.cache, model->repo));
  const auto commit = repo.snapshot_of(model->revision);
  if (!commit) {
    return Status::not_found(
        argument + " is not in the hub's cache: run ingle get " + argument);
  }
  return std::optional(ModelPlace{model->repo, repo.snapshot_folder(*commit)});
}

// Without those that can't be loaded.
std::vector<KnownModel> loadable(
    const Environment& env,
    const std::vector<KnownModel>& models) {
  std::vector<KnownModel> found;
  for (const KnownModel& model : models) {
    if (!model.folder.empty() &&
        summarize_model(env.fs, model.folder).problem.empty()) {
      found.push_back(model);
    }
  }
  return found;
}

Status unknown(
    const std::string& argument,
    const std::vector<KnownModel>& models) {
  const bool is_on_a_hub =
      is_repo_id(argument) && argument.find('/') != std::string::npos;
  return Status::not_found(
      "there is no folder and no model '" + argument + "' here; " +
      (is_on_a_hub ? "from the hub it comes with: ingle get " + argument
           : models.empty() ? "there is none yet: run ingle get"
                            : "there are: " + names_of(models)));
}

Result<ModelPlace> resolve_name(
    const Environment& env,
    const std::string& argument) {
  INGLE_ASSIGN_OR_RETURN(const auto models, list_models(env));
  INGLE_ASSIGN_OR_RETURN(const auto named, find_by_name(models, argument));
  if (named) {
    return place_of(*named);
  }
  INGLE_ASSIGN_OR_RETURN(const auto revision, find_revision(env, argument));
  if (revision) {
    return *revision;
  }
  const auto matches = find_by_part(models, argument);
  if (matches.size() == 1) {
    return place_of(matches.front());
  }
  if (matches.empty()) {
    return unknown(argument, models);
  }
  const auto usable = loadable(env, matches);
  return usable.size() == 1
      ? place_of(usable.front())
      : ambiguous(argument, usable.empty() ? matches : usable);
}

bool is_default(const KnownModel& model) {
  return !model.is_cached && model.name == kDefaultModel.name;
}

// What the headers of its files say. Errors: as MemoryPlan.
Result<PickCandidate> candidate(
    const Environment& env,
    const KnownModel& model) {
  INGLE_ASSIGN_OR_RETURN(
      const MemoryPlan plan,
      MemoryPlan::of(
          env.fs,
          model.folder,
          {.numerics = default_numerics()},
          EngineOptions{}.prefill_chunk));
  const MemoryUse use =
      plan.at(std::min(kUsualContext, plan.config().max_position_embeddings));
  return PickCandidate{model.name, is_default(model), use.weights, use.total()};
}

Result<ModelPlace> pick_for_machine(const Environment& env) {
  INGLE_ASSIGN_OR_RETURN(const auto models, list_models(env));
  const auto usual = std::ranges::find_if(models, is_default);
  if (usual != models.end()) {
    const auto only = candidate(env, *usual);
    // The others' files are not looked at. Where something is wrong with it, to
    // load it says what.
    if (!only.is_ok() || pick_model({&*only, 1}, machine_memory()) != nullptr) {
      return place_of(*usual);
    }
  }
  std::vector<KnownModel> usable;
  std::vector<PickCandidate> candidates; // the same ones
  for (const KnownModel& model : models) {
    if (model.folder.empty()) {
      continue;
    }
    auto each = candidate(env, model);
    if (each.is_ok()) {
      usable.push_back(model);
      candidates.push_back(std::move(each).value());
    }
  }
  if (const auto* picked = pick_model(candidates, machine_memory())) {
    return place_of(usable[static_cast<size_t>(picked - candidates.data())]);
  }
  return Status::not_found(
      usable.empty()
          ? "there is no model that can be loaded yet: run ingle get, or name "
            "one with --model"
          : "none of the models here fits this machine's memory (ingle fit NAME "
            "says why): run ingle get for a small one");
}

} // namespace

Result<ModelPlace> resolve_model(
    const Environment& env,
    const std::string& argument) {
  if (argument.empty()) {
    return pick_for_machine(env);
  }
  if (is_folder(env.fs, argument)) {
    const std::string folder = absolute(argument);
    return ModelPlace{name_of_model(folder), folder};
  }
  return resolve_name(env, argument);
}

} // namespace ingle
