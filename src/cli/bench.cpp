#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/cores.h"
#include "cli/bench_report.h"
#include "cli/bench_session.h"
#include "cli/commands.h"
#include "cli/commit.h"
#include "cli/console.h"
#include "cli/engine_flags.h"
#include "cli/json_output.h"
#include "cli/machine.h"
#include "cli/model_argument.h"
#include "cli/model_hash.h"
#include "cli/progress_bar.h"
#include "cli/stop_signals.h"
#include "kernels/isa.h"

namespace ingle {
namespace {

constexpr int kMaxTokens = 1 << 20;
constexpr int kMaxRows = 1024;

enum class Form { kTable, kCsv, kJson };

struct BenchFlags {
  EngineFlags engine;
  BenchSizes sizes;
  int repeat = 3;
  bool csv = false;
  bool json = false;

  Form form() const {
    return json ? Form::kJson : csv ? Form::kCsv : Form::kTable;
  }
};

// "mlx": none of our kernels.
Result<std::string> isa_of(const RunOptions& options) {
  if (!uses_kernels(options.numerics)) {
    return std::string("mlx");
  }
  INGLE_ASSIGN_OR_RETURN(const Isa isa, choose_isa(options.isa));
  return std::string(to_string(isa));
}

Result<BenchSetting> describe_setting(
    const Environment& env,
    const ModelPlace& model,
    const RunOptions& options) {
  BenchSetting setting;
  setting.commit = kCommit;
  setting.machine = processor_name();
  INGLE_ASSIGN_OR_RETURN(setting.isa, isa_of(options));
  setting.threads =
      options.threads > 0 ? options.threads : physical_cores(env.fs);
  setting.numerics = to_string(options.numerics);
  setting.model = model.name;
  INGLE_ASSIGN_OR_RETURN(setting.model_hash, model_hash(env.fs, model.folder));
  return setting;
}

void print_setting(const BenchSetting& setting) {
  print_line(
      setting.model + ", " + setting.numerics + " numerics, " +
      std::to_string(setting.threads) + " threads, " + setting.machine);
}

size_t longest_name(const std::vector<BenchTest>& tests) {
  size_t longest = 0;
  for (const auto& test : tests) {
    longest = std::max(longest, test_name(test).size());
  }
  return longest;
}

// Lines of a table are printed as they come.
Result<std::vector<Measurement>> measure_all(
    const Environment& env,
    BenchSession& session,
    const std::vector<BenchTest>& tests,
    const BenchFlags& flags) {
  const size_t width = longest_name(tests);
  const bool is_table = flags.form() == Form::kTable;
  if (is_table) {
    print_line(table_head(width));
  }
  std::vector<Measurement> measurements;
  for (const auto& test : tests) {
    ProgressBar bar(test_name(test), env.clock);
    INGLE_ASSIGN_OR_RETURN(
        auto measured, session.measure(test, flags.repeat, bar.callback()));
    bar.finish();
    if (is_table) {
      print_line(table_row(measured, width));
    }
    measurements.push_back(std::move(measured));
  }
  return measurements;
}

Status bench(const Environment& env, const BenchFlags& flags) {
  const auto tests = plan_tests(flags.sizes);
  if (tests.empty()) {
    return Status::invalid_request(
        "nothing to measure: --prompt and --gen are 0");
  }
  INGLE_ASSIGN_OR_RETURN(
      const ModelPlace model, resolve_model(env, flags.engine.model));
  const RunOptions options = flags.engine.run_options(env);
  std::stop_source stop;
  const StopSignals signals([&] { stop.request_stop(); });
  INGLE_ASSIGN_OR_RETURN(
      const auto setting, describe_setting(env, model, options));
  ProgressBar loading("loading", env.clock);
  INGLE_ASSIGN_OR_RETURN(
      auto session,
      BenchSession::load(
          env.fs,
          env.clock,
          model.folder,
          options,
          stop.get_token(),
          loading.callback()));
  loading.finish();
  if (flags.form() == Form::kTable) {
    print_setting(setting);
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto measurements, measure_all(env, session, tests, flags));
  const uint64_t peak = peak_memory();
  switch (flags.form()) {
    case Form::kTable:
      print_line("peak memory " + human_bytes(static_cast<double>(peak)));
      break;
    case Form::kCsv:
      print(to_csv(setting, measurements, peak));
      break;
    case Form::kJson:
      print_json(to_json(setting, measurements, peak));
      break;
  }
  return Status::ok();
}

void add_sizes(
    CLI::App& command,
    const char* name,
    std::vector<int>& sizes,
    const CLI::Range& range,
    const char* help) {
  command.add_option(name, sizes, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...")
      ->check(range);
}

} // namespace

void add_bench(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure prefill and decode speed");
  add_engine_flags(*command, flags->engine);
  const CLI::Range tokens(0, kMaxTokens);
  BenchSizes& sizes = flags->sizes;
  add_sizes(
      *command, "--prompt", sizes.prompt, tokens, "Lengths of prompts to read");
  add_sizes(
      *command, "--gen", sizes.gen, tokens, "Tokens to decode (default: 64)");
  add_sizes(
      *command,
      "--depth",
      sizes.depth,
      tokens,
      "Decode after so many tokens (default: 0)");
  add_sizes(
      *command,
      "--batch",
      sizes.batch,
      CLI::Range(1, kMaxRows),
      "Decode so many answers at the same time (default: 1)");
  command
      ->add_option(
          "--repeat", flags->repeat, "Runs of each test, after a warm-up")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  CLI::Option* json =
      command->add_flag("--json", flags->json, "Print one JSON object");
  command->add_flag("--csv", flags->csv, "Print CSV")->excludes(json);
  command->footer(
      "Without sizes it measures a list of each; with any, those alone.\n"
      "pp512 reads 512 tokens; tg64@d2048 b8 decodes 64 tokens of each of 8\n"
      "answers after 2048 tokens; tg64+sample does so at temperature 0.7 and\n"
      "top-p 0.95. overhead is what a step takes beside evaluating the model,\n"
      "sampler the part of it that picks tokens.\n"
      "Example: ingle bench --prompt 512,2048 --gen 64 --depth 0,8192");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = bench(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
