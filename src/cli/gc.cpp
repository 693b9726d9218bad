#include <array>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "cli/json_output.h"
#include "hub/garbage.h"

namespace ingle {
namespace {

struct GcFlags {
  bool yes = false;
  bool json = false;
};

void print_garbage(const GarbageReport& report, bool is_removed) {
  for (const Garbage& garbage : report.found) {
    std::array<char, 64> head{};
    std::snprintf(
        head.data(),
        head.size(),
        "%10s  %-20s  ",
        human_bytes(static_cast<double>(garbage.bytes)).c_str(),
        std::string(to_string(garbage.kind)).c_str());
    print_line(head.data() + safe_for_terminal(garbage.path));
  }
  const std::string sum = human_bytes(static_cast<double>(report.bytes()));
  if (report.found.empty()) {
    print_line("nothing to remove");
  } else if (is_removed) {
    print_line(sum + " are free again");
  } else {
    print_line(sum + " would be free; to remove it: ingle gc --yes");
  }
}

void print_garbage_json(const GarbageReport& report, bool is_removed) {
  auto list = nlohmann::ordered_json::array();
  for (const Garbage& garbage : report.found) {
    list.push_back(
        {{"kind", to_string(garbage.kind)},
         {"model", garbage.repo},
         {"path", garbage.path},
         {"bytes", garbage.bytes}});
  }
  print_json(
      {{"removed", is_removed}, {"bytes", report.bytes()}, {"found", list}}, 2);
}

Status gc(const Environment& env, const GcFlags& flags) {
  const Processes processes = this_process();
  const DownloadPlace place{env.fs, env.clock, processes, env.hub.cache};
  INGLE_ASSIGN_OR_RETURN(
      const GarbageReport report,
      flags.yes ? remove_garbage(place) : find_garbage(place));
  flags.json ? print_garbage_json(report, flags.yes)
             : print_garbage(report, flags.yes);
  for (const Status& status : report.left) {
    tell("left as it is: " + status.message());
  }
  return Status::ok();
}

} // namespace

void add_gc(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<GcFlags>();
  CLI::App* command = app.add_subcommand(
      "gc", "Find, or remove, what the hub's cache holds that no model needs");
  command->add_flag(
      "--yes", flags->yes, "Remove it (without this it is only listed)");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->footer(
      "It takes parts of downloads that nobody goes on with, snapshots that a\n"
      "newer one has superseded, and what no snapshot refers to. What another\n"
      "program changed in the last hour stays.\n"
      "Example: ingle gc; ingle gc --yes");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = gc(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
