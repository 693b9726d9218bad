#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "api/prompt.h"
#include "base/utf8.h"
#include "cli/chat_history.h"
#include "cli/chat_input.h"
#include "cli/collecting_sink.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/conversation.h"
#include "cli/engine_flags.h"
#include "cli/engine_options.h"
#include "cli/line_editor.h"
#include "cli/progress_bar.h"
#include "cli/sampling_flags.h"
#include "cli/stop_signals.h"
#include "engine/engine.h"
#include "engine/generator_errors.h"

namespace ingle {
namespace {

struct ChatFlags {
  EngineFlags engine;
  std::string system;
  std::optional<int> max_tokens;
  SamplingFlags sampling;
};

constexpr const char* kHelp =
    "/system TEXT  say what the model is to be; without TEXT: nothing\n"
    "/clear        start a new conversation\n"
    "/exit         end, as Ctrl-D does\n"
    "/help         this\n"
    "\n"
    "@PATH in a message puts the file's text into it; Tab completes the path.\n"
    "A line that ends in \\ goes on in the next one. Text between \"\"\" and\n"
    "\"\"\" may have many lines, and an @ or / in it is only that.\n"
    "Ctrl-C stops an answer, Ctrl-R searches what you typed before.\n";

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> kNames = {
      "clear", "exit", "help", "system"};
  return kNames;
}

// Says something about the chat; answers alone go to standard output.
void note(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

// An answer on its way, with what was read of the prompt before it.
class AnswerSink final : public CollectingSink {
 public:
  explicit AnswerSink(const Clock& clock) : reading_("reading", clock) {}
  void on_prefill(PrefillStep step) override {
    reading_.update(
        static_cast<uint64_t>(step.processed),
        static_cast<uint64_t>(step.total));
  }
  void on_delta(GenerationDelta delta) override {
    reading_.finish();
    CollectingSink::on_delta(std::move(delta));
  }
  void on_end(GenerationEnd end) override {
    reading_.finish();
    CollectingSink::on_end(std::move(end));
  }

 private:
  ProgressBar reading_;
};

// Lets another thread cancel a generation, be it submitted yet or not.
class Cancellation {
 public:
  explicit Cancellation(Engine& engine) : engine_(engine) {}
  // Threads: any.
  void cancel() {
    cancelled_ = true;
    if (const GenerationId id = id_; id != 0) {
      engine_.cancel(id);
    }
  }
  void set_id(GenerationId id) {
    id_ = id;
    if (cancelled_) {
      engine_.cancel(id);
    }
  }

 private:
  Engine& engine_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<GenerationId> id_ = 0; // 0: none yet
};

struct Answer {
  std::string text;
  GenerationEnd end;
};

class Chat {
 public:
  Chat(
      const Environment& env,
      const ChatFlags& flags,
      Engine& engine,
      std::shared_ptr<const ServedModel> model)
      : env_(env),
        flags_(flags),
        engine_(engine),
        model_(std::move(model)),
        history_(env.fs, join_path(env.home, "chat_history")) {
    conversation_.set_system(flags.system);
  }

  // With a person at a terminal, until they end it.
  int talk();
  // One message, what there is on standard input, and its answer.
  Result<int> answer_input();

 private:
  Result<GenerationRequest> make_request() const;
  Result<Answer> answer(SignalUse signal_use);
  std::optional<ChatInput> read_input(LineEditor& editor);
  void say(const ChatInput& input);
  void obey(const ChatInput& input);
  void report_failure(const Status& status) const;
  void describe(const GenerationEnd& end) const;
  void recall_history(LineEditor& editor);
  void remember(const std::string& typed, LineEditor& editor);

  const Environment& env_;
  const ChatFlags& flags_;
  Engine& engine_;
  const std::shared_ptr<const ServedModel> model_;
  ChatHistory history_;
  Conversation conversation_;
  bool is_over_ = false;
  bool keeps_history_ = true;
};

Result<GenerationRequest> Chat::make_request() const {
  ChatRequest request;
  request.messages = conversation_.to_json();
  request.options.sampling = default_sampling(model_->defaults);
  flags_.sampling.apply_to(request.options.sampling);
  INGLE_ASSIGN_OR_RETURN(
      GenerationRequest made, make_generation(request, *model_));
  // Not as the request's own: there, one that doesn't fit is an error.
  made.max_tokens =
      std::min(made.max_tokens, flags_.max_tokens.value_or(made.max_tokens));
  made.routing = nullptr; // a thought is shown as it is written
  return made;
}

// Shows the answer to the conversation so far as it is made.
Result<Answer> Chat::answer(SignalUse signal_use) {
  Cancellation cancellation(engine_);
  const StopSignals signals([&] { cancellation.cancel(); }, signal_use);
  INGLE_ASSIGN_OR_RETURN(auto request, make_request());
  const auto sink = std::make_shared<AnswerSink>(env_.clock);
  INGLE_ASSIGN_OR_RETURN(
      const GenerationId id, engine_.submit(std::move(request), sink));
  cancellation.set_id(id);
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  Answer answer;
  while (auto text = sink->next_text()) {
    if (!print(is_terminal ? safe_for_terminal(*text) : *text)) {
      cancellation.cancel(); // nobody reads it
    }
    answer.text += *text;
  }
  answer.end = sink->wait();
  INGLE_RETURN_IF_ERROR(answer.end.status);
  return answer;
}

Result<int> Chat::answer_input() {
  // More than this is refused below, without being read whole.
  const size_t limit =
      kMaxBytesPerToken * static_cast<size_t>(model_->context_length);
  std::string message;
  std::array<char, 4096> part{};
  size_t n = 0;
  while (message.size() <= limit &&
         (n = std::fread(part.data(), 1, part.size(), stdin)) > 0) {
    message.append(part.data(), n);
  }
  if (std::ferror(stdin) != 0) {
    return Status::io("standard input can't be read");
  }
  if (message.size() <= limit && !is_utf8(message)) {
    return Status::invalid_request(
        "standard input is not UTF-8 text: convert it, for example with iconv");
  }
  // The newline that ends a file is not part of what is said.
  message.erase(message.find_last_not_of(" \t\r\n") + 1);
  if (message.empty()) {
    return Status::invalid_request(
        "standard input is empty: pipe a message into it, or run ingle chat "
        "on a terminal");
  }
  conversation_.add_question(std::move(message));
  INGLE_ASSIGN_OR_RETURN(const Answer made, answer(SignalUse::kStop));
  print_line("");
  return made.end.reason == FinishReason::kCancelled ? kInterrupted : 0;
}

int Chat::talk() {
  // Ctrl-C is a key while a line is edited and stops an answer; in between, it
  // comes too late for one.
  std::signal(SIGINT, SIG_IGN);
  const auto complete = [&](std::string_view line) {
    return complete_chat_line(
        line, env_.fs, user_home_folder(), command_names());
  };
  LineEditor editor(complete, ChatHistory::kMaxInputs);
  recall_history(editor);
  note(
      safe_for_terminal(model_->name) +
      "; /help says what you can do here, Ctrl-D ends");
  while (!is_over_) {
    const auto input = read_input(editor);
    if (!input) {
      break;
    }
    switch (input->kind) {
      case ChatInput::Kind::kNothing:
        break;
      case ChatInput::Kind::kCommand:
        obey(*input);
        break;
      case ChatInput::Kind::kMessage:
        say(*input);
        break;
    }
  }
  return 0;
}

// Nothing: the person ended the chat.
std::optional<ChatInput> Chat::read_input(LineEditor& editor) {
  ChatInputReader reader;
  while (true) {
    const bool is_first = reader.typed().empty();
    const TypedLine line = editor.read(is_first ? "> " : ". ");
    switch (line.kind) {
      case TypedLine::Kind::kEnd:
        return std::nullopt;
      case TypedLine::Kind::kGivenUp:
        if (is_first && line.text.empty()) {
          note("Ctrl-D or /exit ends the chat");
        }
        reader.clear();
        break;
      case TypedLine::Kind::kText:
        if (reader.add(line.text)) {
          remember(reader.typed(), editor);
          return reader.take();
        }
        break;
    }
  }
}

void Chat::recall_history(LineEditor& editor) {
  const auto inputs = history_.load();
  if (!inputs.is_ok()) {
    note("no history: " + inputs.status().message());
    keeps_history_ = false;
    return;
  }
  for (const std::string& input : *inputs) {
    editor.remember(input);
  }
}

void Chat::remember(const std::string& typed, LineEditor& editor) {
  editor.remember(typed);
  if (!keeps_history_) {
    return;
  }
  const Status kept = history_.add(typed);
  if (!kept.is_ok()) {
    note("what you type is not kept for the next time: " + kept.message());
    keeps_history_ = false; // said once
  }
}

void Chat::obey(const ChatInput& input) {
  if (input.text == "help") {
    std::fputs(kHelp, stderr);
  } else if (input.text == "system") {
    conversation_.set_system(input.argument);
    note(
        input.argument.empty() ? "no system prompt any more"
                               : "system prompt set");
  } else if (input.text == "clear") {
    conversation_.clear();
    note("new conversation");
  } else if (input.text == "exit") {
    is_over_ = true;
  } else {
    report(Status::invalid_request(
        "there is no command /" + input.text +
        ": /help lists them; a message that begins with / goes between "
        "\"\"\""));
  }
}

void Chat::say(const ChatInput& input) {
  Result<std::string> message = input.is_literal
      ? input.text
      : insert_files(input.text, env_.fs, user_home_folder());
  if (!message.is_ok()) {
    report(message.status());
    return;
  }
  conversation_.add_question(std::move(message).value());
  const Result<Answer> made = answer(SignalUse::kInterrupt);
  if (!made.is_ok()) {
    conversation_.drop_last();
    report_failure(made.status());
    return;
  }
  print_line("");
  describe(made->end);
  if (made->text.empty() && made->end.reason == FinishReason::kCancelled) {
    conversation_.drop_last(); // as if never asked
  } else {
    conversation_.add_answer(made->text);
  }
  is_over_ = !output_status().is_ok();
}

void Chat::report_failure(const Status& status) const {
  const bool is_model = status.reason() == "context_length_exceeded";
  if (!is_model && status.reason() != kContextOverBudget) {
    report(status);
    return;
  }
  const bool is_first = conversation_.turns() == 0;
  report(Status::invalid_request(
      "the " + std::string(is_first ? "message" : "conversation") +
      " does not fit " +
      (is_model ? "the model's context" : "the memory budget's context") +
      " of " + std::to_string(model_->usable_context()) + " tokens: " +
      (is_first ? "send less text" : "/clear starts a new conversation")));
}

void Chat::describe(const GenerationEnd& end) const {
  if (isatty(STDERR_FILENO) == 0) {
    return;
  }
  const GenerationStats& stats = end.stats;
  std::array<char, 96> line{};
  const double seconds = stats.decode_ms / 1000;
  const int decoded = std::max(stats.generated_tokens - 1, 0);
  std::snprintf(
      line.data(),
      line.size(),
      "[%d tokens, %.1f per second]",
      stats.generated_tokens,
      seconds > 0 ? decoded / seconds : 0.0);
  std::string text = line.data();
  if (end.reason == FinishReason::kCancelled) {
    text += " stopped";
  } else if (end.reason == FinishReason::kLength) {
    const bool is_full = stats.prompt_tokens + stats.generated_tokens >=
        model_->usable_context();
    text += is_full ? " the context is full: /clear starts a new conversation"
                    : " cut off by --max-tokens";
  }
  note(text);
}

Result<int> chat(const Environment& env, const ChatFlags& flags) {
  INGLE_RETURN_IF_ERROR(check_text("--system", flags.system));
  ProgressBar loading("loading", env.clock);
  INGLE_ASSIGN_OR_RETURN(
      auto options, engine_options(env, flags.engine, loading));
  Engine engine(std::move(options), env.fs, env.clock);
  {
    const StopSignals signals([&] { engine.request_stop(); });
    INGLE_RETURN_IF_ERROR(engine.wait_until_loaded());
  }
  loading.finish();
  const auto model = engine.model();
  if (!model->tokenizer || !model->chat_template) {
    return Status::invalid_request(
        "the model '" + model->name +
        "' has no tokenizer or no chat template: use ingle generate");
  }
  Chat chat(env, flags, engine, model);
  if (isatty(STDIN_FILENO) == 0) {
    return chat.answer_input();
  }
  return chat.talk();
}

} // namespace

void add_chat(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command = app.add_subcommand(
      "chat",
      "Talk to a model on the terminal; or give it one message, by a pipe");
  add_engine_flags(*command, flags->engine);
  add_memory_flag(*command, flags->engine);
  add_adapter_flag(*command, flags->engine);
  command->add_option(
      "--system", flags->system, "What the model is to be: the system prompt");
  command
      ->add_option(
          "--max-tokens",
          flags->max_tokens,
          "Length of an answer (default: what the context holds)")
      ->check(CLI::PositiveNumber);
  add_sampling_flags(*command, flags->sampling);
  command->footer(
      "What isn't given is as the model's generation_config.json says.\n"
      "Example: ingle chat --system \"You are a poet.\"\n"
      "         git diff | ingle chat --system \"Review this change.\"");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const auto code = chat(env, *flags);
      return code.is_ok() ? *code : report(code.status());
    };
  });
}

} // namespace ingle
