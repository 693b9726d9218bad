#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "api/prompt.h"
#include "cli/collecting_sink.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/conversation.h"
#include "cli/engine_flags.h"
#include "cli/engine_options.h"
#include "cli/json_output.h"
#include "cli/sampling_flags.h"
#include "cli/stop_signals.h"
#include "engine/adapters.h"
#include "engine/engine.h"

namespace ingle {
namespace {

struct GenerateFlags {
  EngineFlags engine;
  std::string prompt;
  std::string ids;
  int max_tokens = 256;
  SamplingFlags sampling;
  bool ignore_eos = false;
  bool json = false;
  std::optional<int> top_logprobs;
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
    INGLE_ASSIGN_OR_RETURN(
        auto made,
        make_generation(
            CompletionRequest{}, {"--prompt", flags.prompt}, model));
    return std::move(made.prompt);
  }
  ChatRequest request;
  Conversation conversation;
  conversation.add_question(flags.prompt);
  request.messages = conversation.to_json();
  INGLE_ASSIGN_OR_RETURN(auto made, make_generation(request, model));
  return std::move(made.prompt);
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

// What a generation came to.
struct Answer {
  std::vector<GeneratedToken> tokens;
  std::string text;
  GenerationEnd end;
};

nlohmann::ordered_json
result_json(const Answer& answer, const GenerateFlags& flags, bool has_text) {
  const GenerationStats& stats = answer.end.stats;
  nlohmann::ordered_json result;
  auto ids = nlohmann::ordered_json::array();
  for (const auto& token : answer.tokens) {
    ids.push_back(token.id);
  }
  result["ids"] = ids;
  result["text"] =
      has_text ? nlohmann::ordered_json(answer.text) : nlohmann::ordered_json();
  result["finish_reason"] = to_string(answer.end.reason);
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
    result["logprobs"] = logprobs_json(answer.tokens);
  }
  return result;
}

// Takes the answer as it comes; shows its text unless it is printed as JSON.
Answer
collect(CollectingSink& sink, const GenerateFlags& flags, Engine& engine) {
  Answer answer;
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  while (auto text = sink.next_text()) {
    if (!flags.json && !print(is_terminal ? safe_for_terminal(*text) : *text)) {
      engine.request_stop(); // nobody reads it
    }
    answer.text += *text;
  }
  answer.end = sink.wait();
  answer.tokens = sink.take_tokens();
  return answer;
}

// Without a tokenizer there is no text to show while it is made.
std::string ids_line(const std::vector<GeneratedToken>& tokens) {
  std::vector<std::string> ids;
  for (const auto& token : tokens) {
    ids.push_back(std::to_string(token.id));
  }
  return join(ids, ",");
}

Result<GenerationRequest> make_request(
    const GenerateFlags& flags,
    const ServedModel& model) {
  GenerationRequest request;
  INGLE_ASSIGN_OR_RETURN(request.prompt, prompt_ids(flags, model));
  const int room =
      model.usable_context() - static_cast<int>(request.prompt.size());
  request.max_tokens = std::max(1, std::min(flags.max_tokens, room));
  flags.sampling.apply_to(request.sampling); // greedy, where not given
  request.ignore_eos = flags.ignore_eos;
  request.top_logprobs = flags.top_logprobs;
  INGLE_ASSIGN_OR_RETURN(
      request.adapters, model.adapters->choose(std::nullopt));
  return request;
}

Result<int> generate(const Environment& env, const GenerateFlags& flags) {
  if (flags.prompt.empty() == flags.ids.empty()) {
    return Status::invalid_request("give either --prompt TEXT or --ids 1,2,3");
  }
  INGLE_RETURN_IF_ERROR(check_text("--prompt", flags.prompt));
  ProgressBar loading("loading", env.clock);
  INGLE_ASSIGN_OR_RETURN(
      auto options, engine_options(env, flags.engine, loading));
  Engine engine(std::move(options), env.fs, env.clock);
  const StopSignals signals([&] { engine.request_stop(); });
  INGLE_RETURN_IF_ERROR(engine.wait_until_loaded());
  loading.finish();
  const auto model = engine.model();

  INGLE_ASSIGN_OR_RETURN(auto request, make_request(flags, *model));
  const auto sink = std::make_shared<CollectingSink>();
  const Status submitted = engine.submit(std::move(request), sink).status();
  if (submitted.reason() == "server_stopping") {
    return kInterrupted;
  }
  INGLE_RETURN_IF_ERROR(submitted);
  const Answer answer = collect(*sink, flags, engine);
  INGLE_RETURN_IF_ERROR(answer.end.status);
  const bool has_text = model->tokenizer != nullptr;
  if (flags.json) {
    print_json(result_json(answer, flags, has_text));
  } else {
    print_line(has_text ? "" : ids_line(answer.tokens));
  }
  return answer.end.reason == FinishReason::kCancelled ? kInterrupted : 0;
}

} // namespace

void add_generate(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = app.add_subcommand(
      "generate", "Answer one prompt, printed as it is decoded");
  add_engine_flags(*command, flags->engine);
  add_memory_flag(*command, flags->engine);
  add_adapter_flag(*command, flags->engine);
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
  add_sampling_flags(*command, flags->sampling);
  command->add_flag(
      "--ignore-eos", flags->ignore_eos, "Go on after the end of the answer");
  command
      ->add_option(
          "--top-logprobs",
          flags->top_logprobs,
          "With --json: the N likeliest tokens at each position")
      ->check(CLI::Range(0, 100));
  command->add_flag("--json", flags->json, "Print one JSON object at the end");
  command->footer(
      "Without sampling flags the likeliest token is taken each time.\n"
      "Example: ingle generate --prompt \"What is the capital of France?\"");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const auto code = generate(env, *flags);
      return code.is_ok() ? *code : report(code.status());
    };
  });
}

} // namespace ingle
