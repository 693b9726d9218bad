// The flags of every command that loads a model: which one, and how it runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/environment.h"
#include "model/run_options.h"

namespace CLI {
class App;
}

namespace ingle {

struct EngineFlags {
  std::string model; // as resolve_model() takes it
  // Nothing: what the default device calls for.
  std::optional<Numerics> numerics;
  int threads = 0; // 0: one for each physical core
  std::string kv_quant = "config"; // "config", "off", "8" or "4"
  int kv_group_size = 64; // of 8 or 4 bits
  // GB; nothing: three quarters of the machine's.
  std::optional<double> memory_budget;
  std::vector<std::string> adapters; // "ID=PATH" each

  bool is_kv_uniform() const {
    return kv_quant == "4" || kv_quant == "8";
  }
  RunOptions run_options(const Environment& env) const;
  // Bytes that the process may take.
  uint64_t usable_memory() const;
  // Of `adapters`: id, path.
  std::vector<std::pair<std::string, std::string>> mounted_adapters() const;
};

// --model, --numerics, --exact, --threads, --kv-quant, --kv-group-size. `flags`
// outlives the parsing.
void add_engine_flags(CLI::App& command, EngineFlags& flags);

// --memory-budget.
void add_memory_flag(CLI::App& command, EngineFlags& flags);

// --adapter.
void add_adapter_flag(CLI::App& command, EngineFlags& flags);

// As --numerics spells it: "near", "fast", "exact"; "native" for MLX's own.
std::string_view to_string(Numerics numerics);

} // namespace ingle
