#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json_output.h"
#include "cli/progress_bar.h"
#include "import/import_model.h"
#include "import/quantize_folder.h"
#include "model/config.h"
#include "model/load_model.h"

namespace ingle {
namespace {

struct ImportFlags {
  std::string source;
  std::string out;
  std::optional<int> bits;
  std::optional<int> group_size;
  bool json = false;
};

std::string default_out(const Environment& env, const std::string& file) {
  std::string name = base_name(file);
  if (name.ends_with(".gguf")) {
    name.resize(name.size() - std::string_view(".gguf").size());
  }
  return join_path(models_folder(env), name);
}

std::string default_out(
    const Environment& env,
    std::string folder,
    const AffineSpec& spec) {
  while (folder.size() > 1 && folder.back() == '/') {
    folder.pop_back();
  }
  return join_path(
      models_folder(env),
      base_name(folder) + "-" + std::to_string(spec.bits) + "bit");
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

void print_report(const QuantizeReport& report) {
  char line[160];
  for (const auto& total : report.totals) {
    std::snprintf(
        line,
        sizeof(line),
        "%4llu x %-6s -> %-36s %9s -> %9s",
        static_cast<unsigned long long>(total.tensors),
        total.type.c_str(),
        total.stored_as.c_str(),
        human_bytes(static_cast<double>(total.bytes)).c_str(),
        human_bytes(static_cast<double>(total.stored_bytes)).c_str());
    print_line(line);
  }
  print_line("quantised to " + report.folder);
}

void print_report_json(const QuantizeReport& report) {
  auto totals = nlohmann::ordered_json::array();
  for (const auto& total : report.totals) {
    totals.push_back(
        {{"type", total.type},
         {"stored_as", total.stored_as},
         {"tensors", total.tensors},
         {"bytes", total.bytes},
         {"stored_bytes", total.stored_bytes}});
  }
  print_json({{"folder", report.folder}, {"totals", totals}}, 2);
}

Status import_file(const Environment& env, const ImportFlags& flags) {
  if (flags.bits || flags.group_size) {
    return Status::invalid_request(
        flags.source +
        ": --bits and --group-size are for folders of unquantised weights; a "
        "GGUF file keeps the types that it has");
  }
  const std::string out =
      flags.out.empty() ? default_out(env, flags.source) : flags.out;
  ProgressBar bar("importing", env.clock);
  INGLE_ASSIGN_OR_RETURN(
      const ImportReport report,
      import_gguf(env.fs, flags.source, out, bar.callback()));
  bar.finish();
  flags.json ? print_report_json(report) : print_report(report);
  return Status::ok();
}

Status import_folder(const Environment& env, const ImportFlags& flags) {
  const std::string path = join_path(flags.source, "config.json");
  INGLE_ASSIGN_OR_RETURN(const std::string text, env.fs.read(path));
  INGLE_ASSIGN_OR_RETURN(
      const ModelConfig config, parse_model_config(text, path));
  QuantizeOptions options;
  options.spec.bits = flags.bits.value_or(options.spec.bits);
  options.spec.group_size = flags.group_size.value_or(options.spec.group_size);
  options.wide_modules = config.wide_modules;
  options.stacked_experts = config.experts.stacked;
  INGLE_ASSIGN_OR_RETURN(
      const auto weights, WeightFolder::open(env.fs, flags.source));
  INGLE_ASSIGN_OR_RETURN(
      options.dropped,
      check_weights(
          config,
          KvQuantizations(config.layers.size()),
          *weights,
          flags.source));
  const std::string out = flags.out.empty()
      ? default_out(env, flags.source, options.spec)
      : flags.out;
  ProgressBar bar("quantising", env.clock);
  INGLE_ASSIGN_OR_RETURN(
      const QuantizeReport report,
      quantize_folder(env.fs, flags.source, out, options, bar.callback()));
  bar.finish();
  flags.json ? print_report_json(report) : print_report(report);
  return Status::ok();
}

Status import(const Environment& env, const ImportFlags& flags) {
  INGLE_ASSIGN_OR_RETURN(const FileInfo info, env.fs.stat(flags.source));
  return info.is_directory ? import_folder(env, flags)
                           : import_file(env, flags);
}

} // namespace

void add_import(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = app.add_subcommand(
      "import",
      "Turn a GGUF file, or a folder of unquantised weights, into a model "
      "folder that ingle serves");
  command
      ->add_option(
          "source",
          flags->source,
          "The GGUF file; or the folder, as Hugging Face has it, to quantise")
      ->required();
  command->add_option(
      "--out",
      flags->out,
      "The folder to make (default: the file's name in the models folder; of "
      "a folder, with -4bit or what it is)");
  command
      ->add_option("--bits", flags->bits, "Bits of a weight, of a folder's (4)")
      ->check(CLI::IsMember({"2", "3", "4", "5", "6", "8"}));
  command
      ->add_option(
          "--group-size",
          flags->group_size,
          "Weights that share a scale, of a folder's (64)")
      ->check(CLI::IsMember({"32", "64", "128"}));
  command->add_flag("--json", flags->json, "Print the report as JSON");
  command->footer(
      "Examples: ingle import model.Q4_1.gguf --out models/mine\n"
      "          ingle import --bits 4 --group-size 64 Qwen3-0.6B");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = import(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
