#include "cli/completion_script.h"

#include <vector>

#include <CLI/CLI.hpp>

#include "cli/console.h"

namespace ingle {
namespace {

struct Flag {
  std::vector<std::string> names; // with their dashes
  std::string help;
  bool takes_value = false;
};

struct Command {
  std::string name;
  std::string help;
  std::vector<Flag> flags;
};

Flag flag_of(const CLI::Option& option) {
  Flag flag;
  for (const auto& name : option.get_snames()) {
    flag.names.push_back("-" + name);
  }
  for (const auto& name : option.get_lnames()) {
    flag.names.push_back("--" + name);
  }
  flag.help = option.get_description();
  flag.takes_value = option.get_items_expected_max() > 0;
  return flag;
}

// The command itself where it has no name of its own.
Command command_of(const CLI::App& app) {
  Command command{app.get_name(), app.get_description(), {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) {
      command.flags.push_back(flag_of(*option));
    }
  }
  return command;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* each :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command_of(*each));
  }
  return commands;
}

std::string flag_words(const Command& command, bool only_with_value) {
  std::vector<std::string> words;
  for (const Flag& flag : command.flags) {
    if (flag.takes_value || !only_with_value) {
      words.insert(words.end(), flag.names.begin(), flag.names.end());
    }
  }
  return join(words, only_with_value ? "|" : " ");
}

std::string names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands) {
    names.push_back(command.name);
  }
  return join(names, " ");
}

std::string
replace_all(std::string text, std::string_view from, std::string_view to) {
  size_t at = 0;
  while ((at = text.find(from, at)) != std::string::npos) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

// 'text', for all three.
std::string quoted(const std::string& text, Shell shell) {
  const std::string safe =
      shell == Shell::kFish ? replace_all(text, "\\", "\\\\") : text;
  return "'" + replace_all(safe, "'", shell == Shell::kFish ? "\\'" : "'\\''") +
      "'";
}

std::string bash_script(const CLI::App& app) {
  const Command root = command_of(app);
  const auto commands = commands_of(app);
  std::string text =
      "# ingle's completion for bash\n"
      "_ingle() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=\n"
      "  local words valued=\n"
      "  [ \"$COMP_CWORD\" -gt 1 ] && before=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    words='" +
      names_of(commands) + " " + flag_words(root, false) +
      "'\n"
      "  else\n"
      "    case ${COMP_WORDS[1]} in\n";
  for (const auto& command : commands) {
    text += "      " + command.name + ")\n        words='" +
        flag_words(command, false) + "'\n        valued='|" +
        flag_words(command, true) + "|'\n        ;;\n";
  }
  text +=
      "      *) return 0 ;;\n"
      "    esac\n"
      "    # Files, for a value or a word that is no flag.\n"
      "    case $valued in *\"|$before|\"*) words= ;; esac\n"
      "    case $word in -*) ;; *) words= ;; esac\n"
      "  fi\n"
      "  COMPREPLY=()\n"
      "  [ -n \"$words\" ] || return 0\n"
      "  while IFS= read -r match; do COMPREPLY+=(\"$match\"); done \\\n"
      "    < <(compgen -W \"$words\" -- \"$word\")\n"
      "}\n"
      "complete -o default -F _ingle ingle\n";
  return text;
}

// A row of _arguments: '(--a --b)'{--a,--b}'[help]:value:_files'.
std::string zsh_flag(const Flag& flag) {
  std::string help = flag.help;
  for (const std::string_view special : {"\\", "[", "]", ":"}) {
    help = replace_all(help, special, "\\" + std::string(special));
  }
  const std::string value = flag.takes_value ? ":value:_files" : "";
  const std::string tail = quoted("[" + help + "]" + value, Shell::kZsh);
  return flag.names.size() == 1 ? flag.names.front() + tail
                                : "'(" + join(flag.names, " ") + ")'{" +
          join(flag.names, ",") + "}" + tail;
}

std::string zsh_script(const CLI::App& app) {
  const auto commands = commands_of(app);
  std::string text =
      "#compdef ingle\n"
      "# ingle's completion for zsh\n"
      "_ingle() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const auto& command : commands) {
    text += "    " +
        quoted(command.name + ":" + replace_all(command.help, ":", "\\:"),
               Shell::kZsh) +
        "\n";
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const auto& command : commands) {
    text += "    " + command.name + ")\n      _arguments \\\n";
    for (const auto& flag : command.flags) {
      text += "        " + zsh_flag(flag) + " \\\n";
    }
    text += "        '*:file:_files'\n      ;;\n";
  }
  text +=
      "  esac\n"
      "}\n"
      "if [ \"$funcstack[1]\" = _ingle ]; then\n"
      "  _ingle \"$@\"\n"
      "else\n"
      "  compdef _ingle ingle\n"
      "fi\n";
  return text;
}

std::string fish_flag(const std::string& condition, const Flag& flag) {
  std::string line = "complete -c ingle -n " + quoted(condition, Shell::kFish);
  for (const auto& name : flag.names) {
    const bool is_long = name.starts_with("--");
    line += is_long ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return line + (flag.takes_value ? " -r" : "") + " -d " +
      quoted(flag.help, Shell::kFish) + "\n";
}

std::string fish_script(const CLI::App& app) {
  std::string text = "# ingle's completion for fish\n";
  for (const auto& flag : command_of(app).flags) {
    text += fish_flag("__fish_use_subcommand", flag);
  }
  for (const auto& command : commands_of(app)) {
    text += "complete -c ingle -f -n __fish_use_subcommand -a " + command.name +
        " -d " + quoted(command.help, Shell::kFish) + "\n";
    for (const auto& flag : command.flags) {
      text += fish_flag("__fish_seen_subcommand_from " + command.name, flag);
    }
  }
  return text;
}

} // namespace

std::string completion_script(const CLI::App& app, Shell shell) {
  switch (shell) {
    case Shell::kBash:
      return bash_script(app);
    case Shell::kZsh:
      return zsh_script(app);
    case Shell::kFish:
      return fish_script(app);
  }
  return {};
}

} // namespace ingle
