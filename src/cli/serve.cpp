#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/mutex.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/model_argument.h"
#include "cli/stop_signals.h"
#include "cli/version.h"
#include "engine/engine.h"
#include "http/server.h"

namespace ingle {
namespace {

struct ServeFlags {
  std::string model;
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
};

// Lets the main thread wait for a signal.
class StopRequest {
 public:
  void raise() {
    MutexLock lock(mutex_);
    raised_ = true;
    changed_.notify_all();
  }
  void wait() {
    MutexLock lock(mutex_);
    while (!raised_) {
      changed_.wait(mutex_);
    }
  }
  bool is_raised() {
    MutexLock lock(mutex_);
    return raised_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool raised_ INGLE_GUARDED_BY(mutex_) = false;
};

// An IPv6 address stands in brackets.
std::string url_of(const std::string& host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return "http://" + (is_v6 ? "[" + host + "]" : host) + ":" +
      std::to_string(port);
}

std::string example_request(const std::string& url) {
  return "curl " + url +
      "/v1/chat/completions -d '{\"messages\": [{\"role\": \"user\", "
      "\"content\": \"What is the capital of France?\"}]}'";
}

double seconds_since(
    const Clock& clock,
    std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(clock.now() - start).count();
}

Status serve(const Environment& env, const ServeFlags& flags) {
  const auto start = env.clock.now();
  EngineOptions engine_options;
  INGLE_ASSIGN_OR_RETURN(
      engine_options.model_folder, resolve_model(env, flags.model));
  engine_options.numerics = default_numerics();
  const std::string name = base_name(engine_options.model_folder);

  Engine engine(std::move(engine_options), env.fs, env.clock);
  StopRequest stop;
  const StopSignals signals([&] {
    stop.raise();
    engine.request_stop();
  });
  ServerOptions server_options;
  server_options.host = flags.host;
  server_options.port = flags.port;
  server_options.version = kVersion;
  INGLE_ASSIGN_OR_RETURN(
      const auto server,
      Server::start(std::move(server_options), engine, env.clock));
  const std::string url = url_of(flags.host, server->port());
  print_line("listening on " + url + ", loading " + name);

  const Status loaded = engine.wait_until_loaded();
  if (!stop.is_raised()) {
    INGLE_RETURN_IF_ERROR(loaded);
    char took[32];
    std::snprintf(
        took, sizeof(took), "%.1f s", seconds_since(env.clock, start));
    print_line("ready after " + std::string(took) + ", try:");
    print_line("  " + example_request(url));
    stop.wait();
  }
  log_info("stopping");
  server->stop();
  engine.stop();
  return Status::ok();
}

} // namespace

void add_serve(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand(
      "serve", "Serve a model over the OpenAI API until Ctrl-C");
  command->add_option(
      "--model",
      flags->model,
      "Model folder or name (default: the default model)");
  command->add_option("--host", flags->host, "Address to listen on")
      ->capture_default_str();
  command
      ->add_option("--port", flags->port, "Port to listen on; 0: any free one")
      ->capture_default_str();
  command->footer("Example: ingle serve --port 8080");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = serve(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
