#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/engine_flags.h"
#include "cli/json_output.h"
#include "cli/known_models.h"
#include "cli/model_summary.h"
#include "engine/engine.h"
#include "model/memory_plan.h"

namespace ingle {
namespace {

struct Entry {
  KnownModel model;
  ModelSummary summary;
  // Tokens of one sequence that fit in memory; nothing: it can't be loaded.
  std::optional<int64_t> max_context{};
};

// What of a model's download is there can't be used.
ModelSummary unfinished(const KnownModel& model) {
  ModelSummary summary;
  summary.tier = "none";
  summary.problem =
      "its download is not whole, or has no main revision; run "
      "ingle get " +
      model.name;
  return summary;
}

Entry look_at(const Environment& env, const KnownModel& model) {
  if (model.folder.empty()) {
    return {model, unfinished(model)};
  }
  Entry entry{model, summarize_model(env.fs, model.folder)};
  const auto plan = MemoryPlan::of(
      env.fs,
      model.folder,
      EngineFlags{}.run_options(env),
      EngineOptions{}.prefill_chunk);
  if (!entry.summary.problem.empty()) {
    return entry;
  }
  if (plan.is_ok()) {
    entry.max_context = plan->max_context(EngineFlags{}.usable_memory());
  } else {
    entry.summary.tier = "none";
    entry.summary.problem = plan.status().message();
  }
  return entry;
}

constexpr size_t kColumns = 7;
using Row = std::array<std::string, kColumns>;
constexpr size_t kFirstNumber = 4; // column: these are flush right

Row row_of(const Entry& entry) {
  const auto known = [](const std::string& text) {
    return text.empty() ? "?" : safe_for_terminal(text);
  };
  const ModelSummary& summary = entry.summary;
  return {
      safe_for_terminal(entry.model.name),
      known(summary.family),
      summary.tier,
      known(summary.quantization),
      human_bytes(static_cast<double>(summary.bytes)),
      summary.context == 0 ? "?" : std::to_string(summary.context),
      entry.max_context ? std::to_string(*entry.max_context) : "?"};
}

std::string line_of(
    const Row& row,
    const std::array<size_t, kColumns>& widths) {
  std::string line;
  for (size_t i = 0; i < kColumns; ++i) {
    const std::string gap(widths[i] - std::min(widths[i], row[i].size()), ' ');
    line += i == 0 ? "" : "  ";
    line += i < kFirstNumber ? row[i] + gap : gap + row[i];
  }
  return line;
}

void print_table(const std::vector<Entry>& entries) {
  std::vector<Row> rows = {
      {"model",
       "family",
       "support",
       "weights",
       "size",
       "context",
       "of it fit"}};
  for (const Entry& entry : entries) {
    rows.push_back(row_of(entry));
  }
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  print_line(line_of(rows.front(), widths));
  for (size_t i = 0; i < entries.size(); ++i) {
    print_line(line_of(rows[i + 1], widths));
    if (const auto& problem = entries[i].summary.problem; !problem.empty()) {
      print_line("    can't be loaded: " + safe_for_terminal(problem));
    }
  }
}

void print_table_json(const std::vector<Entry>& entries) {
  auto list = nlohmann::ordered_json::array();
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json()
                        : nlohmann::ordered_json(text);
  };
  for (const Entry& entry : entries) {
    const ModelSummary& summary = entry.summary;
    list.push_back(
        {{"name", entry.model.name},
         {"source", entry.model.is_cached ? "hub" : "models"},
         {"folder", text_or_null(entry.model.folder)},
         {"family", text_or_null(summary.family)},
         {"tier", summary.tier},
         {"quantization", text_or_null(summary.quantization)},
         {"bytes", summary.bytes},
         {"context",
          summary.context == 0 ? nlohmann::ordered_json()
                               : nlohmann::ordered_json(summary.context)},
         {"max_safe_context",
          entry.max_context ? nlohmann::ordered_json(*entry.max_context)
                            : nlohmann::ordered_json()},
         {"problem", text_or_null(summary.problem)}});
  }
  print_json(list, 2);
}

Status ls(const Environment& env, bool json) {
  INGLE_ASSIGN_OR_RETURN(const auto models, list_models(env));
  std::vector<Entry> entries;
  for (const KnownModel& model : models) {
    entries.push_back(look_at(env, model));
  }
  if (json) {
    print_table_json(entries);
  } else if (entries.empty()) {
    print_line(
        "no models in " + models_folder(env) + " and " + env.hub.cache +
        "; run ingle get");
  } else {
    print_table(entries);
  }
  return Status::ok();
}

} // namespace

void add_ls(CLI::App& app, const Environment& env, Run& run) {
  CLI::App* command = app.add_subcommand(
      "ls", "List the models of this machine, and what can be run");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print a JSON array");
  command->footer("Example: ingle ls --json");
  command->callback([&env, &run, json] {
    run = [&env, json] {
      const Status status = ls(env, *json);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
