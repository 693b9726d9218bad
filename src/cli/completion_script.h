// Completion scripts for shells, made from the program's own command line.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace ingle {

enum class Shell { kBash, kZsh, kFish };

// A script for the shell to source: completes the names of all commands of
// `app`, the flags of each, and files where a flag or a command takes a value.
std::string completion_script(const CLI::App& app, Shell shell);

} // namespace ingle
