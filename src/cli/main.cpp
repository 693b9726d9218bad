// ingle: the command line.

#include <csignal>
#include <exception>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/version.h"

namespace {

int run(int argc, char** argv) {
  const auto fs = ingle::make_posix_file_system();
  const ingle::SystemClock clock;
  const ingle::Environment env{
      *fs,
      clock,
      ingle::home_folder(),
      ingle::python_program(),
      ingle::wanted_isa(),
      ingle::hub_places()};

  CLI::App app("ingle runs language models on your own machine.", "ingle");
  app.set_version_flag("--version", ingle::kVersion);
  app.require_subcommand(0, 1);
  app.footer(
      "Example: ingle serve, then point an OpenAI client at "
      "http://127.0.0.1:8080/v1\n"
      "ingle COMMAND --help tells more of each.");
  ingle::Run chosen;
  ingle::add_serve(app, env, chosen);
  ingle::add_chat(app, env, chosen);
  ingle::add_generate(app, env, chosen);
  ingle::add_fit(app, env, chosen);
  ingle::add_bench(app, env, chosen);
  ingle::add_import(app, env, chosen);
  ingle::add_get(app, env, chosen);
  ingle::add_ls(app, env, chosen);
  ingle::add_rm(app, env, chosen);
  ingle::add_gc(app, env, chosen);
  ingle::add_doctor(app, env, chosen);
  ingle::add_completions(app, chosen);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : ingle::kUsage;
  }
  if (!chosen) {
    ingle::print(app.help());
    return 0;
  }
  return chosen();
}

// A command whose output is lost has failed, also where it stopped for that.
int run_and_check_output(int argc, char** argv) {
  const int code = run(argc, argv);
  const ingle::Status written = ingle::output_status();
  const bool is_told = code != 0 && code != ingle::kInterrupted;
  return is_told || written.is_ok() ? code : ingle::report(written);
}

} // namespace

int main(int argc, char** argv) {
  // A reader that goes away is an error of write(), not the end.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run_and_check_output(argc, argv);
  } catch (const std::exception& error) {
    return ingle::report(ingle::Status::internal(error.what()));
  }
}
