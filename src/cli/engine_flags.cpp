#include "cli/engine_flags.h"

#include <cstdlib>
#include <map>

#include <CLI/CLI.hpp>

#include "cli/machine.h"
#include "model/memory_plan.h"

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

void add_kv_flags(CLI::App& command, EngineFlags& flags) {
  command
      .add_option(
          "--kv-quant",
          flags.kv_quant,
          "Bits of the KV cache, in all layers. config (default): as the "
          "model's kv_config.json says, else 16; off: 16")
      ->type_name("4|8|config|off")
      ->check(CLI::IsMember({"4", "8", "config", "off"}).description(""));
  const CLI::Option* group_size =
      command
          .add_option(
              "--kv-group-size",
              flags.kv_group_size,
              "Elements that share a scale there, with --kv-quant 4 or 8 "
              "(default: 64)")
          ->type_name("32|64|128")
          ->check(CLI::IsMember({"32", "64", "128"}).description(""));
  command.parse_complete_callback([&flags, group_size] {
    if (group_size->count() > 0 && !flags.is_kv_uniform()) {
      throw CLI::ValidationError(
          "--kv-group-size", "goes with --kv-quant 4 or 8");
    }
  });
}

} // namespace

RunOptions EngineFlags::run_options(const Environment& env) const {
  RunOptions options{
      .numerics = numerics.value_or(default_numerics()),
      .threads = threads,
      .isa = env.isa};
  if (is_kv_uniform()) {
    options.kv_quant = KvQuant::kUniform;
    options.kv = {std::stoi(kv_quant), kv_group_size};
  } else if (kv_quant == "off") {
    options.kv_quant = KvQuant::kOff;
  }
  return options;
}

uint64_t EngineFlags::usable_memory() const {
  constexpr double kGigabyte = 1e9;
  return memory_budget ? static_cast<uint64_t>(*memory_budget * kGigabyte)
                       : ingle::usable_memory(machine_memory());
}

std::vector<std::pair<std::string, std::string>> EngineFlags::mounted_adapters()
    const {
  std::vector<std::pair<std::string, std::string>> mounted;
  for (const std::string& each : adapters) {
    const size_t at = each.find('=');
    mounted.emplace_back(each.substr(0, at), each.substr(at + 1));
  }
  return mounted;
}

void add_adapter_flag(CLI::App& command, EngineFlags& flags) {
  command
      .add_option(
          "--adapter",
          flags.adapters,
          "An adapter's folder, and what requests call it; may be repeated: "
          "what says nothing of adapters gets all of them, in this order")
      ->type_name("ID=PATH")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const size_t at = text.find('=');
        const bool has_both =
            at != std::string::npos && at > 0 && at + 1 < text.size();
        return has_both
            ? std::string()
            : "expected ID=PATH, like terse=adapters/terse, got " + text;
      });
}

void add_memory_flag(CLI::App& command, EngineFlags& flags) {
  constexpr double kMost = 1e6;
  command
      .add_option(
          "--memory-budget",
          flags.memory_budget,
          "Memory that may be used, in GB (default: three quarters of what "
          "the machine has)")
      ->type_name("GB")
      ->check([](const std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        return value > 0 && value <= kMost // which no NaN is
            ? std::string()
            : "expected gigabytes, more than 0, got " + text;
      });
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  command.add_option(
      "--model",
      flags.model,
      "Model folder, name or a part of it (default: the default model, else "
      "the largest here that fits)");
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
  add_kv_flags(command, flags);
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
