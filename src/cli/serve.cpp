#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/mutex.h"
#include "cli/api_keys.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/engine_flags.h"
#include "cli/engine_options.h"
#include "cli/machine.h"
#include "cli/sampling_flags.h"
#include "cli/stop_signals.h"
#include "cli/version.h"
#include "engine/engine.h"
#include "http/server.h"

namespace ingle {
namespace {

struct ServeFlags {
  EngineFlags engine;
  std::string host = "127.0.0.1";
  int port = 8080; // 0 to 65535
  std::vector<std::string> api_keys;
  std::string api_key_file;
  GenerationDefaults defaults;
  int max_rows = 8;
  int max_token_gap = 100; // ms
  std::optional<double> prompt_cache; // GiB; nothing: the default
};

// A quarter of the memory, at most 8 GiB.
size_t prompt_cache_bytes(const ServeFlags& flags) {
  constexpr double kGibibyte = 1 << 30;
  constexpr double kMost = 8 * kGibibyte;
  const double memory = flags.engine.memory_budget
      ? *flags.engine.memory_budget * 1e9
      : static_cast<double>(machine_memory());
  return static_cast<size_t>(
      flags.prompt_cache ? *flags.prompt_cache * kGibibyte
                         : std::min(memory / 4, kMost));
}

void add_scheduling_flags(CLI::App& command, ServeFlags& flags) {
  constexpr int kMostRows = 256;
  constexpr int kMostMilliseconds = 60'000;
  constexpr double kMostGibibytes = 1e6;
  command
      .add_option(
          "--max-rows", flags.max_rows, "Answers that are made at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, kMostRows));
  command
      .add_option(
          "--max-token-gap",
          flags.max_token_gap,
          "How long the next token of an answer may wait for another's prompt")
      ->type_name("MS")
      ->capture_default_str()
      ->check(CLI::Range(1, kMostMilliseconds));
  command
      .add_option(
          "--prompt-cache",
          flags.prompt_cache,
          "Memory for what prompts have in common, in GiB (default: a quarter "
          "of the memory, at most 8; 0: off)")
      ->type_name("GIB")
      ->check(CLI::Range(0.0, kMostGibibytes));
}

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

// How a client's shell spells the key; empty: none is needed. One that came as
// a flag or in a file is not shown.
std::string spell_key(const std::vector<std::string>& keys) {
  if (keys.empty()) {
    return {};
  }
  const char* const variable = std::getenv(kApiKeyVariable);
  return variable != nullptr && keys.front() == variable
      ? std::string("$") + kApiKeyVariable
      : "YOUR-KEY";
}

// One that this model answers.
std::string example_request(
    const ServedModel& model,
    const std::string& url,
    const std::string& key) {
  const bool has_text = model.tokenizer != nullptr;
  const bool has_chat = has_text && model.chat_template != nullptr;
  const std::string body = has_chat
      ? "\"messages\": [{\"role\": \"user\", "
        "\"content\": \"What is the capital of France?\"}]"
      : has_text ? "\"prompt\": \"The capital of France is\""
                 : "\"prompt\": [1, 2, 3]";
  return "curl " + url + "/v1/" + (has_chat ? "chat/" : "") + "completions " +
      (key.empty() ? "" : "-H \"Authorization: Bearer " + key + "\" ") +
      "-d '{" + body + "}'";
}

double seconds_since(
    const Clock& clock,
    std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(clock.now() - start).count();
}

// What whoever starts it for the first time wants to know.
void print_ready(
    const ServedModel& model,
    const std::string& url,
    double seconds,
    const std::string& key) {
  std::array<char, 32> took{};
  std::snprintf(took.data(), took.size(), "ready after %.1f s", seconds);
  print_line(took.data());
  print_line("  address  " + url + "/v1");
  print_line(
      "  model    " + model.name + ", a context of " +
      std::to_string(model.usable_context()) + " tokens" +
      (model.usable_context() < model.context_length
           ? ", of " + std::to_string(model.context_length) +
               " that more memory would hold"
           : ""));
  print_line("  compute  " + model.compute);
  print_line(
      "  memory   " + human_bytes(static_cast<double>(model.weight_bytes)) +
      " for the weights, of " +
      human_bytes(static_cast<double>(machine_memory())) +
      " that this machine has");
  print_line("  try      " + example_request(model, url, key));
}

Status serve(const Environment& env, const ServeFlags& flags) {
  const auto start = env.clock.now();
  INGLE_ASSIGN_OR_RETURN(
      auto api_keys, read_api_keys(env.fs, flags.api_keys, flags.api_key_file));
  const std::string key = spell_key(api_keys);
  ProgressBar loading("loading", env.clock);
  INGLE_ASSIGN_OR_RETURN(
      auto options, engine_options(env, flags.engine, loading));
  options.defaults = flags.defaults;
  options.max_rows = flags.max_rows;
  options.max_token_gap = std::chrono::milliseconds(flags.max_token_gap);
  options.prompt_cache_bytes = prompt_cache_bytes(flags);
  const std::string name = options.model_name;

  Engine engine(std::move(options), env.fs, env.clock);
  StopRequest stop;
  const StopSignals signals([&] {
    stop.raise();
    engine.request_stop();
  });
  ServerOptions server_options;
  server_options.host = flags.host;
  server_options.port = static_cast<uint16_t>(flags.port);
  server_options.version = kVersion;
  server_options.api_keys = std::move(api_keys);
  INGLE_ASSIGN_OR_RETURN(
      const auto server,
      Server::start(std::move(server_options), engine, env.clock));
  const std::string url = url_of(flags.host, server->port());
  print_line("listening on " + url + ", loading " + name);

  const Status loaded = engine.wait_until_loaded();
  loading.finish();
  if (!stop.is_raised()) {
    INGLE_RETURN_IF_ERROR(loaded);
    print_ready(*engine.model(), url, seconds_since(env.clock, start), key);
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
  add_engine_flags(*command, flags->engine);
  add_memory_flag(*command, flags->engine);
  add_adapter_flag(*command, flags->engine);
  add_scheduling_flags(*command, *flags);
  command->add_option("--host", flags->host, "Address to listen on")
      ->capture_default_str();
  command
      ->add_option("--port", flags->port, "Port to listen on; 0: any free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  command
      ->add_option(
          "--api-key",
          flags->api_keys,
          "A key that clients have to send; may be repeated. Other users of "
          "this machine see it: the variable or the file is better")
      ->envname(kApiKeyVariable)
      ->allow_extra_args(false);
  command->add_option(
      "--api-key-file", flags->api_key_file, "Keys, one on each line");
  add_default_flags(*command, flags->defaults);
  command->footer(
      "Sampling flags hold where a request says nothing, over the model's\n"
      "generation_config.json. To other machines (--host 0.0.0.0) it is open\n"
      "only with a key.\n"
      "Example: ingle serve --port 8080 --temperature 0.2");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = serve(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
