// The flags of every command that loads a model: which one, and how it runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

  RunOptions run_options(const Environment& env) const;
};

// --model, --numerics, --exact, --threads. `flags` outlives the parsing.
void add_engine_flags(CLI::App& command, EngineFlags& flags);

// As --numerics spells it: "near", "fast", "exact"; "native" for MLX's own.
std::string_view to_string(Numerics numerics);

} // namespace ingle
