#include <cstdio>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/engine_flags.h"
#include "cli/json_output.h"
#include "cli/machine.h"
#include "cli/model_argument.h"
#include "engine/engine.h"
#include "model/memory_plan.h"

namespace ingle {
namespace {

struct FitFlags {
  EngineFlags engine;
  int context = 0; // tokens; 0: kUsualContext, or the model's if that is less
  bool json = false;
};

// What is printed.
struct Fit {
  std::string name;
  std::string numerics;
  int64_t context = 0;
  MemoryUse use;
  uint64_t usable = 0;
  int64_t model_context = 0;
  int64_t max_context = 0;

  bool fits() const {
    return use.total() <= usable;
  }
};

std::string amount(uint64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

void print_row(const char* name, const std::string& value) {
  char line[256];
  std::snprintf(line, sizeof(line), "  %-13s %s", name, value.c_str());
  print_line(line);
}

void print_table(const Fit& fit) {
  const std::string context = std::to_string(fit.context) + " tokens";
  print_line(fit.name + ", " + fit.numerics + " numerics, " + context);
  print_row("weights", amount(fit.use.weights));
  print_row("KV cache", amount(fit.use.kv));
  print_row("activations", amount(fit.use.work));
  print_row("program", amount(fit.use.program));
  print_row(
      "in all",
      amount(fit.use.total()) + " of " + amount(fit.usable) +
          " that may be used: " + (fit.fits() ? "fits" : "does not fit"));
  print_row(
      "max context",
      fit.max_context == 0 ? "none: not even one token fits"
                           : std::to_string(fit.max_context) + " tokens" +
              (fit.max_context == fit.model_context
                   ? ", all that the model was made for"
                   : " of " + std::to_string(fit.model_context)));
}

void print_fit_json(const Fit& fit) {
  nlohmann::ordered_json object;
  object["model"] = fit.name;
  object["numerics"] = fit.numerics;
  object["context"] = fit.context;
  object["weights_bytes"] = fit.use.weights;
  object["kv_bytes"] = fit.use.kv;
  object["work_bytes"] = fit.use.work;
  object["program_bytes"] = fit.use.program;
  object["total_bytes"] = fit.use.total();
  object["usable_bytes"] = fit.usable;
  object["fits"] = fit.fits();
  object["model_context"] = fit.model_context;
  object["max_safe_context"] = fit.max_context;
  print_json(object, 2);
}

Result<Fit> look_at(const Environment& env, const FitFlags& flags) {
  INGLE_ASSIGN_OR_RETURN(
      const ModelPlace place, resolve_model(env, flags.engine.model));
  const RunOptions options = flags.engine.run_options(env);
  INGLE_ASSIGN_OR_RETURN(
      const MemoryPlan plan,
      MemoryPlan::of(
          env.fs, place.folder, options, EngineOptions{}.prefill_chunk));
  Fit fit;
  fit.name = place.name;
  fit.numerics = to_string(options.numerics);
  fit.model_context = plan.config().max_position_embeddings;
  fit.context = flags.context > 0
      ? flags.context
      : std::min<int64_t>(kUsualContext, fit.model_context);
  fit.use = plan.at(fit.context);
  fit.usable = flags.engine.usable_memory();
  fit.max_context = plan.max_context(fit.usable);
  return fit;
}

Status print_fit(const Environment& env, const FitFlags& flags) {
  INGLE_ASSIGN_OR_RETURN(const Fit fit, look_at(env, flags));
  flags.json ? print_fit_json(fit) : print_table(fit);
  return Status::ok();
}

} // namespace

void add_fit(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<FitFlags>();
  CLI::App* command = app.add_subcommand(
      "fit", "Say what memory a model takes, and how long a context fits");
  command->add_option(
      "NAME", flags->engine.model, "Model folder or name, as --model");
  add_engine_flags(*command, flags->engine);
  add_memory_flag(*command, flags->engine);
  command
      ->add_option(
          "--ctx",
          flags->context,
          "Tokens of one sequence, prompt and answer (default: 8192, or the "
          "model's context if that is less)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30).description(""));
  command->add_flag("--json", flags->json, "Print a JSON object");
  command->footer(
      "Nothing is loaded: it reads the headers of the model's files. Serving\n"
      "refuses a model of which not one token fits, and a request that needs\n"
      "more than the max context.\n"
      "Example: ingle fit SmolLM2 --ctx 4096 --kv-quant 8 --memory-budget 0.5");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = print_fit(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
