#include <charconv>
#include <condition_variable>
#include <mutex>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "api/prompt.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/model_argument.h"
#include "cli/stop_signals.h"
#include "engine/engine.h"

namespace ingle {
namespace {

constexpr int kInterrupted = 130;

struct GenerateFlags {
  std::string model;
  std::string prompt;
  std::string ids;
  int max_tokens = 256;
  SamplingParams sampling;
  bool ignore_eos = false;
  bool exact = false;
  bool json = false;
  std::optional<int> top_logprobs;
};

// Collects a generation and shows its text as it comes.
class ConsoleSink final : public GenerationSink {
 public:
  explicit ConsoleSink(bool show_text) : show_text_(show_text) {}

  void on_delta(GenerationDelta delta) override {
    if (show_text_) {
      print(delta.text);
    }
    std::lock_guard lock(mutex_);
    text_ += delta.text;
    for (auto& token : delta.tokens) {
      tokens_.push_back(std::move(token));
    }
  }
  void on_end(GenerationEnd end) override {
    std::lock_guard lock(mutex_);
    end_ = std::move(end);
    ended_.notify_all();
  }

  // Blocks until the generation is over; what it gave can be read then.
  const GenerationEnd& wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return end_.has_value(); });
    return *end_;
  }
  const std::vector<GeneratedToken>& tokens() const {
    return tokens_;
  }
  const std::string& text() const {
    return text_;
  }

 private:
  const bool show_text_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<GeneratedToken> tokens_;
  std::string text_;
  std::optional<GenerationEnd> end_;
};

Result<std::vector<TokenId>> parse_ids(const std::string& list) {
  std::vector<TokenId> ids;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (true) {
    TokenId id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next != end && *next != ',')) {
      return Status::invalid_request(
          "--ids has to be a list of token ids like 1,2,3, got '" + list + "'");
    }
    ids.push_back(id);
    if (next == end) {
      return ids;
    }
    at = next + 1;
  }
}

Result<std::vector<TokenId>> prompt_ids(
    const GenerateFlags& flags,
    const ServedModel& model) {
  if (!flags.ids.empty()) {
    return parse_ids(flags.ids);
  }
  if (!model.tokenizer) {
    return Status::invalid_request(
        "the model '" + model.name +
        "' has no tokenizer.json: give the prompt as --ids 1,2,3");
  }
  if (!model.chat_template) {
    CompletionRequest request;
    request.prompt = flags.prompt;
    INGLE_ASSIGN_OR_RETURN(auto made, make_generation(request, model));
    return std::move(made.prompt);
  }
  ChatRequest request;
  request.messages =
      nlohmann::json::array({{{"role", "user"}, {"content", flags.prompt}}})
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  INGLE_ASSIGN_OR_RETURN(auto made, make_generation(request, model));
  return std::move(made.prompt);
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "stop";
}

double per_second(int tokens, double milliseconds) {
  return milliseconds > 0 ? tokens * 1000 / milliseconds : 0;
}

nlohmann::ordered_json logprobs_json(
    const std::vector<GeneratedToken>& tokens) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& token : tokens) {
    auto top = nlohmann::ordered_json::array();
    for (const auto& entry : token.top) {
      top.push_back({{"id", entry.id}, {"logprob", entry.logprob}});
    }
    list.push_back(
        {{"id", token.id}, {"logprob", token.logprob}, {"top", top}});
  }
  return list;
}

std::string result_json(
    const ConsoleSink& sink,
    const GenerationEnd& end,
    const GenerateFlags& flags,
    bool has_text) {
  const GenerationStats& stats = end.stats;
  nlohmann::ordered_json result;
  auto ids = nlohmann::ordered_json::array();
  for (const auto& token : sink.tokens()) {
    ids.push_back(token.id);
  }
  result["ids"] = ids;
  result["text"] =
      has_text ? nlohmann::ordered_json(sink.text()) : nlohmann::ordered_json();
  result["finish_reason"] = name_of(end.reason);
  result["usage"] = {
      {"prompt_tokens", stats.prompt_tokens},
      {"completion_tokens", stats.generated_tokens},
      {"total_tokens", stats.prompt_tokens + stats.generated_tokens}};
  const int decoded = std::max(stats.generated_tokens - 1, 0);
  result["timings"] = {
      {"prefill_ms", stats.prefill_ms},
      {"decode_ms", stats.decode_ms},
      {"prefill_tokens_per_second",
       per_second(stats.prompt_tokens - stats.cached_tokens, stats.prefill_ms)},
      {"decode_tokens_per_second", per_second(decoded, stats.decode_ms)}};
  if (flags.top_logprobs) {
    result["logprobs"] = logprobs_json(sink.tokens());
  }
  return result.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<int> generate(const Environment& env, const GenerateFlags& flags) {
  if (flags.prompt.empty() == flags.ids.empty()) {
    return Status::invalid_request("give either --prompt TEXT or --ids 1,2,3");
  }
  EngineOptions options;
  INGLE_ASSIGN_OR_RETURN(options.model_folder, resolve_model(env, flags.model));
  options.numerics = flags.exact ? Numerics::kExact : default_numerics();

  std::atomic<Engine*> running = nullptr;
  StopSignals signals([&] {
    if (Engine* engine = running) {
      engine->request_stop();
    } else {
      std::_Exit(kInterrupted);
    }
  });
  Engine engine(std::move(options), env.fs, env.clock);
  running = &engine;
  INGLE_RETURN_IF_ERROR(engine.wait_until_loaded());
  const auto model = engine.model();

  GenerationRequest request;
  INGLE_ASSIGN_OR_RETURN(request.prompt, prompt_ids(flags, *model));
  const int room =
      model->context_length - static_cast<int>(request.prompt.size());
  request.max_tokens = std::max(1, std::min(flags.max_tokens, room));
  request.sampling = flags.sampling;
  request.ignore_eos = flags.ignore_eos;
  request.top_logprobs = flags.top_logprobs;
  const auto sink = std::make_shared<ConsoleSink>(!flags.json);
  INGLE_RETURN_IF_ERROR(engine.submit(std::move(request), sink).status());
  const GenerationEnd& end = sink->wait();
  INGLE_RETURN_IF_ERROR(end.status);
  print_line(
      flags.json ? result_json(*sink, end, flags, model->tokenizer != nullptr)
                 : "");
  return end.reason == FinishReason::kCancelled ? kInterrupted : 0;
}

} // namespace

void add_generate(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = app.add_subcommand(
      "generate", "Answer one prompt, printed as it is decoded");
  command->add_option(
      "--model",
      flags->model,
      "Model folder or name (default: the default model)");
  command->add_option(
      "--prompt",
      flags->prompt,
      "What to say; put through the model's chat template if it has one");
  command->add_option(
      "--ids",
      flags->ids,
      "Token ids like 1,2,3 instead of text, used as they are");
  command->add_option("--max-tokens", flags->max_tokens, "Length of the answer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--temperature", flags->sampling.temperature, "0 is greedy")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 5.0));
  command
      ->add_option(
          "--top-p", flags->sampling.top_p, "Keep the likeliest up to this sum")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option(
          "--top-k", flags->sampling.top_k, "Keep the k likeliest; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", flags->sampling.seed, "Same seed, same answer");
  command->add_flag(
      "--ignore-eos", flags->ignore_eos, "Go on after the end of the answer");
  command
      ->add_option(
          "--top-logprobs",
          flags->top_logprobs,
          "With --json: the N likeliest tokens at each position")
      ->check(CLI::Range(0, 100));
  command->add_flag(
      "--exact",
      flags->exact,
      "f32 throughout; the only mode on a CPU in this version");
  command->add_flag("--json", flags->json, "Print one JSON object at the end");
  command->footer(
      "Example: ingle generate --prompt \"What is the capital of France?\"");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const auto code = generate(env, *flags);
      return code.is_ok() ? *code : report(code.status());
    };
  });
}

} // namespace ingle
