#include <array>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <dlfcn.h>
#include <mlx/device.h>
#include <mlx/version.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/default_model.h"
#include "cli/json_output.h"
#include "cli/machine.h"
#include "cli/model_argument.h"
#include "cli/version.h"
#include "kernels/isa.h"

namespace ingle {
namespace {

// One line of the report. `advice` says what to do; empty: all is well.
struct Finding {
  std::string name;
  std::string value;
  std::string advice;
};

// What the CPU kernels use, of what there is.
Finding vector_instructions(const Environment& env) {
  const auto sets = instruction_sets();
  const auto isa = choose_isa(env.isa);
  if (!isa.is_ok()) {
    return {"instruction sets", join(sets, " "), isa.status().message()};
  }
  return {
      "instruction sets",
      (sets.empty() ? "none" : join(sets, " ")) +
          "; kernels: " + std::string(to_string(*isa)),
      sets.empty() ? "this processor has no vector instructions that ingle "
                     "knows: expect it to be slow"
                   : ""};
}

Finding device() {
  namespace mx = mlx::core;
  return {
      "device", mx::default_device() == mx::Device::gpu ? "gpu" : "cpu", ""};
}

#if !defined(__APPLE__)
// The kernels that OpenBLAS picked for this processor; "" where it isn't there.
std::string openblas_core() {
  using CoreName = char* (*)();
  void* symbol = dlsym(RTLD_DEFAULT, "openblas_get_corename");
  return symbol ? reinterpret_cast<CoreName>(symbol)() : "";
}
#endif

// The library that matrix products on a CPU end up in.
Finding blas() {
#if defined(__APPLE__)
  return {"blas", "Accelerate", ""};
#else
  void* symbol = dlsym(RTLD_DEFAULT, "cblas_sgemm");
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0) {
    return {"blas", "none", "reinstall: scripts/setup brings OpenBLAS"};
  }
  const std::string library = base_name(info.dli_fname);
  const std::string core = openblas_core();
  if (core.empty()) {
    return {
        "blas",
        library,
        "not OpenBLAS, matrix products will be 10 times slower: install "
        "libopenblas and run scripts/setup"};
  }
  const bool knows_processor = core != "PRESCOTT" && core != "Prescott";
  return {
      "blas",
      library + " with kernels for " + core,
      knows_processor
          ? ""
          : "OpenBLAS does not know this processor; if it has AVX-512, "
            "OPENBLAS_CORETYPE=SkylakeX in the environment is quicker, else "
            "Haswell"};
#endif
}

Finding memory() {
  const auto total = static_cast<double>(machine_memory());
  constexpr double kSmall = 2e9;
  return {
      "memory",
      human_bytes(total),
      total < kSmall ? "the default model needs about 1 GB" : ""};
}

Finding disk(const Environment& env) {
  std::string folder = env.home;
  while (!env.fs.exists(folder) && folder != parent_path(folder)) {
    folder = parent_path(folder);
  }
  const auto space = env.fs.space(folder);
  if (!space.is_ok()) {
    return {"disk", "unknown", space.status().message()};
  }
  constexpr double kSmall = 1e9;
  const auto free = static_cast<double>(space->available);
  return {
      "disk",
      human_bytes(free) + " free for " + env.home,
      free < kSmall ? "the default model takes 0.3 GB while it is imported"
                    : ""};
}

Finding default_model(const Environment& env) {
  const auto folder = resolve_model(env, "");
  return {
      "default model",
      folder.is_ok() ? folder->folder : "not there",
      folder.is_ok() ? "" : "run ingle get"};
}

std::vector<Finding> examine(const Environment& env) {
  return {
      {"ingle", kVersion, ""},
      {"mlx", mlx::core::version(), ""},
      device(),
      {"cores", std::to_string(sysconf(_SC_NPROCESSORS_ONLN)), ""},
      vector_instructions(env),
      blas(),
      memory(),
      disk(env),
      default_model(env)};
}

void print_report(const std::vector<Finding>& findings) {
  for (const auto& finding : findings) {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "%-18s", finding.name.c_str());
    print_line(name.data() + finding.value);
    if (!finding.advice.empty()) {
      print_line("                  -> " + finding.advice);
    }
  }
}

void print_report_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json report;
  for (const auto& finding : findings) {
    report[finding.name] = {
        {"value", finding.value}, {"advice", finding.advice}};
  }
  print_json(report, 2);
}

} // namespace

void add_doctor(CLI::App& app, const Environment& env, Run& run) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine has and what is missing");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print a JSON object");
  command->footer("Example: ingle doctor");
  command->callback([&env, &run, json] {
    run = [&env, json] {
      const auto findings = examine(env);
      *json ? print_report_json(findings) : print_report(findings);
      return 0;
    };
  });
}

} // namespace ingle
