// The commands, one file each. Each adds its flags to the program's command
// line and leaves in `run` what to do when it is chosen.
#pragma once

#include <functional>

#include "cli/environment.h"

namespace CLI {
class App;
}

namespace ingle {

// Returns the exit code.
using Run = std::function<int()>;

void add_serve(CLI::App& app, const Environment& env, Run& run);
void add_generate(CLI::App& app, const Environment& env, Run& run);
void add_chat(CLI::App& app, const Environment& env, Run& run);
void add_fit(CLI::App& app, const Environment& env, Run& run);
void add_bench(CLI::App& app, const Environment& env, Run& run);
void add_import(CLI::App& app, const Environment& env, Run& run);
void add_get(CLI::App& app, const Environment& env, Run& run);
void add_ls(CLI::App& app, const Environment& env, Run& run);
void add_rm(CLI::App& app, const Environment& env, Run& run);
void add_gc(CLI::App& app, const Environment& env, Run& run);
void add_doctor(CLI::App& app, const Environment& env, Run& run);
void add_completions(CLI::App& app, Run& run);

} // namespace ingle
