#include "cli/engine_flags.h"

#include <map>

#include <CLI/CLI.hpp>

namespace ingle {
namespace {

constexpr int kMaxThreads = 1024;

const std::map<std::string, Numerics>& numerics_names() {
  static const std::map<std::string, Numerics> kNames = {
      {"near", Numerics::kNear},
      {"fast", Numerics::kFast},
      {"exact", Numerics::kExact}};
  return kNames;
}

// --exact is --numerics exact: both may be there, if they say the same.
void choose(EngineFlags& flags, Numerics numerics) {
  if (flags.numerics.value_or(numerics) != numerics) {
    throw CLI::ValidationError(
        "--exact", "means --numerics exact, and another one is given");
  }
  flags.numerics = numerics;
}

} // namespace

RunOptions EngineFlags::run_options(const Environment& env) const {
  return {
      .numerics = numerics.value_or(default_numerics()),
      .threads = threads,
      .isa = env.isa};
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  command.add_option(
      "--model",
      flags.model,
      "Model folder or name (default: the default model)");
  command
      .add_option_function<std::string>(
          "--numerics",
          [&flags](const std::string& name) {
            choose(flags, numerics_names().at(name));
          },
          "How a CPU computes. near (default): f32's answers from 15-bit "
          "activations; fast: 8-bit activations; exact: f32, weights unpacked")
      ->type_name("near|fast|exact")
      ->check(CLI::IsMember(numerics_names()).description(""));
  command.add_flag_callback(
      "--exact",
      [&flags] { choose(flags, Numerics::kExact); },
      "The same as --numerics exact");
  command
      .add_option(
          "--threads",
          flags.threads,
          "Threads that compute (default: one for each physical core)")
      ->check(CLI::Range(1, kMaxThreads));
}

std::string_view to_string(Numerics numerics) {
  switch (numerics) {
    case Numerics::kExact:
      return "exact";
    case Numerics::kNear:
      return "near";
    case Numerics::kFast:
      return "fast";
    case Numerics::kNative:
      return "native";
  }
  return "exact";
}

} // namespace ingle
