#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/completion_script.h"
#include "cli/console.h"

namespace ingle {

void add_completions(CLI::App& app, Run& run) {
  static const std::map<std::string, Shell> kShells = {
      {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};
  auto shell = std::make_shared<Shell>();
  CLI::App* command = app.add_subcommand(
      "completions", "Print a script that completes ingle's command line");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("SHELL")
      ->transform(CLI::CheckedTransformer(kShells).description(""));
  command->footer(
      "Example: source <(ingle completions bash)\n"
      "zsh: the same; fish: ingle completions fish | source");
  command->callback([&app, &run, shell] {
    run = [&app, shell] {
      print(completion_script(app, *shell));
      return 0;
    };
  });
}

} // namespace ingle
