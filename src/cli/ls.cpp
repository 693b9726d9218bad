#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json_output.h"
#include "cli/model_argument.h"
#include "model/config.h"

namespace ingle {
namespace {

struct Entry {
  std::string name;
  std::string folder;
  std::string type; // "?" where config.json is not understood
  std::string precision;
  uint64_t bytes = 0;
};

std::string precision_of(const ModelConfig& config) {
  const auto& quantization = config.quantization.everywhere;
  return quantization ? std::to_string(quantization->bits) + "-bit" : "dense";
}

// Never fails: what can't be read is shown as "?".
Entry look_at(const Environment& env, const std::string& name) {
  Entry entry{name, join_path(models_folder(env), name), "?", "?", 0};
  const auto files = env.fs.list(entry.folder);
  if (files.is_ok()) {
    for (const auto& file : *files) {
      const auto info = env.fs.stat(join_path(entry.folder, file));
      entry.bytes += info.is_ok() ? info->size : 0;
    }
  }
  const std::string path = join_path(entry.folder, "config.json");
  const auto json = env.fs.read(path);
  if (json.is_ok()) {
    const auto config = parse_model_config(*json, path);
    if (config.is_ok()) {
      entry.type = config->model_type;
      entry.precision = precision_of(*config);
    }
  }
  return entry;
}

void print_table(const std::vector<Entry>& entries) {
  for (const auto& entry : entries) {
    char line[256];
    std::snprintf(
        line,
        sizeof(line),
        "%-40s %-10s %-8s %10s",
        entry.name.c_str(),
        entry.type.c_str(),
        entry.precision.c_str(),
        human_bytes(static_cast<double>(entry.bytes)).c_str());
    print_line(line);
  }
}

void print_table_json(const std::vector<Entry>& entries) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& entry : entries) {
    list.push_back(
        {{"name", entry.name},
         {"folder", entry.folder},
         {"model_type", entry.type},
         {"precision", entry.precision},
         {"bytes", entry.bytes}});
  }
  print_json(list, 2);
}

Status ls(const Environment& env, bool json) {
  INGLE_ASSIGN_OR_RETURN(const auto names, list_models(env));
  std::vector<Entry> entries;
  for (const auto& name : names) {
    entries.push_back(look_at(env, name));
  }
  if (json) {
    print_table_json(entries);
  } else if (entries.empty()) {
    print_line("no models in " + models_folder(env) + "; run ingle get");
  } else {
    print_table(entries);
  }
  return Status::ok();
}

} // namespace

void add_ls(CLI::App& app, const Environment& env, Run& run) {
  CLI::App* command = app.add_subcommand("ls", "List the imported models");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print a JSON array");
  command->footer("Example: ingle ls --json");
  command->callback([&env, &run, json] {
    run = [&env, json] {
      const Status status = ls(env, *json);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
