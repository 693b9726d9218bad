#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json_output.h"
#include "cli/progress_bar.h"
#include "import/import_model.h"

namespace ingle {
namespace {

struct ImportFlags {
  std::string file;
  std::string out;
  bool json = false;
};

std::string default_out(const Environment& env, const std::string& file) {
  std::string name = base_name(file);
  if (name.ends_with(".gguf")) {
    name.resize(name.size() - std::string_view(".gguf").size());
  }
  return join_path(models_folder(env), name);
}

void print_report(const ImportReport& report) {
  char line[160];
  for (const auto& tensor : report.tensors) {
    std::snprintf(
        line,
        sizeof(line),
        "%-28s %-6s -> %-36s %s",
        tensor.gguf_name.c_str(),
        tensor.gguf_type.c_str(),
        tensor.stored_as.c_str(),
        tensor.is_exact ? "exact" : "quantised again");
    print_line(line);
  }
  print_line("");
  for (const auto& total : report.totals()) {
    std::snprintf(
        line,
        sizeof(line),
        "%4llu x %-6s -> %-36s %9s -> %9s  %s",
        static_cast<unsigned long long>(total.tensors),
        total.gguf_type.c_str(),
        total.stored_as.c_str(),
        human_bytes(static_cast<double>(total.gguf_bytes)).c_str(),
        human_bytes(static_cast<double>(total.stored_bytes)).c_str(),
        total.is_exact ? "exact" : "quantised again");
    print_line(line);
  }
  print_line("imported to " + report.folder);
}

void print_report_json(const ImportReport& report) {
  auto tensors = nlohmann::ordered_json::array();
  for (const auto& tensor : report.tensors) {
    tensors.push_back(
        {{"gguf_name", tensor.gguf_name},
         {"name", tensor.name},
         {"shape", tensor.shape},
         {"gguf_type", tensor.gguf_type},
         {"stored_as", tensor.stored_as},
         {"exact", tensor.is_exact},
         {"gguf_bytes", tensor.gguf_bytes},
         {"stored_bytes", tensor.stored_bytes}});
  }
  nlohmann::ordered_json result;
  result["architecture"] = report.architecture;
  result["folder"] = report.folder;
  result["tensors"] = tensors;
  print_json(result, 2);
}

Status import(const Environment& env, const ImportFlags& flags) {
  const std::string out =
      flags.out.empty() ? default_out(env, flags.file) : flags.out;
  ProgressBar bar("importing", env.clock);
  INGLE_ASSIGN_OR_RETURN(
      const ImportReport report,
      import_gguf(env.fs, flags.file, out, bar.callback()));
  bar.finish();
  flags.json ? print_report_json(report) : print_report(report);
  return Status::ok();
}

} // namespace

void add_import(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = app.add_subcommand(
      "import", "Turn a GGUF file into a model folder that ingle serves");
  command->add_option("file", flags->file, "The GGUF file")->required();
  command->add_option(
      "--out",
      flags->out,
      "The folder to make (default: the file's name in the models folder)");
  command->add_flag("--json", flags->json, "Print the report as JSON");
  command->footer("Example: ingle import model.Q4_1.gguf --out models/mine");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = import(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
