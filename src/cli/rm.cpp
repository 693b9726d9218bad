#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "cli/json_output.h"
#include "cli/known_models.h"
#include "hub/garbage.h"

namespace ingle {
namespace {

struct RmFlags {
  std::string model;
  bool json = false;
};

// By its whole name: a part of one is too little to lose a model for.
Result<KnownModel> find_model(
    const Environment& env,
    const std::string& argument) {
  INGLE_ASSIGN_OR_RETURN(const auto models, list_models(env));
  INGLE_ASSIGN_OR_RETURN(const auto named, find_by_name(models, argument));
  if (named) {
    return *named;
  }
  const auto matches = find_by_part(models, argument);
  if (matches.empty()) {
    return Status::not_found(
        "there is no model '" + argument + "' here; " +
        (models.empty() ? "there is none" : "there are: " + names_of(models)));
  }
  return Status::invalid_request(
      "'" + argument + "' is no model's whole name, which it takes to remove " +
      "one; there are: " + names_of(matches));
}

Result<uint64_t> remove_model(const Environment& env, const KnownModel& model) {
  const Processes processes = this_process();
  const DownloadPlace place{env.fs, env.clock, processes, env.hub.cache};
  return model.is_cached ? remove_repo(place, model.name)
                         : remove_folder(env.fs, model.folder);
}

Status rm(const Environment& env, const RmFlags& flags) {
  INGLE_ASSIGN_OR_RETURN(const KnownModel model, find_model(env, flags.model));
  INGLE_ASSIGN_OR_RETURN(const uint64_t bytes, remove_model(env, model));
  if (flags.json) {
    print_json({{"name", model.name}, {"bytes", bytes}});
  } else {
    print_line(
        model.name + " is removed; " + human_bytes(static_cast<double>(bytes)) +
        " are free again");
  }
  return Status::ok();
}

} // namespace

void add_rm(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<RmFlags>();
  CLI::App* command = app.add_subcommand(
      "rm", "Remove a model: all that there is of it on this machine");
  command->add_option("model", flags->model, "Its name, as ingle ls shows it")
      ->required();
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->footer("Example: ingle rm Qwen/Qwen3-0.6B");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = rm(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
