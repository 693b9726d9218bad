#include "api/answer_writer.h"

#include <utility>

#include "api/choice_shape.h"
#include "api/error_body.h"

namespace ingle {
namespace {

constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";

std::string event_of(const Json& value) {
  return "data: " + to_text(value) + "\n\n";
}

// What the answers of all choices came to.
class UsageCounter {
 public:
  UsageCounter(size_t choices, size_t choices_per_prompt)
      : open_(choices), choices_per_prompt_(choices_per_prompt) {}

  // Answers to one prompt share it: it counts once.
  void add(size_t choice, const GenerationStats& stats) {
    --open_;
    generated_ += stats.generated_tokens;
    reasoning_ += stats.reasoning_tokens;
    if (choice % choices_per_prompt_ == 0) {
      prompt_ += stats.prompt_tokens;
      cached_ += stats.cached_tokens;
    }
  }
  bool is_complete() const {
    return open_ == 0;
  }
  Json json() const {
    Json usage;
    usage["prompt_tokens"] = prompt_;
    usage["completion_tokens"] = generated_;
    usage["total_tokens"] = prompt_ + generated_;
    usage["prompt_tokens_details"]["cached_tokens"] = cached_;
    usage["completion_tokens_details"]["reasoning_tokens"] = reasoning_;
    return usage;
  }

 private:
  size_t open_; // choices that have not ended
  const size_t choices_per_prompt_;
  int64_t prompt_ = 0;
  int64_t generated_ = 0;
  int64_t cached_ = 0;
  int64_t reasoning_ = 0;
};

// Both forms: who is answered, and how.
class Writer : public AnswerWriter {
 public:
  Writer(
      AnswerIdentity identity,
      AnswerOptions options,
      std::unique_ptr<const ChoiceShape> shape)
      : identity_(std::move(identity)),
        options_(std::move(options)),
        shape_(std::move(shape)),
        usage_(options_.choices(), options_.choices_per_prompt) {}

 protected:
  // The fields that stand first in every chunk and body, `choices` included.
  Json head(std::string_view object, Json choices) const {
    Json head;
    head["id"] = std::string(shape_->id_prefix()) + identity_.uuid;
    head["object"] = object;
    head["created"] = identity_.created;
    head["model"] = identity_.model;
    head["choices"] = std::move(choices);
    return head;
  }
  bool wants_logprobs() const {
    return options_.top_logprobs.has_value();
  }
  // Null where nothing is echoed.
  const Echo* echo_of(size_t choice) const {
    return options_.echoes.empty()
        ? nullptr
        : &options_.echoes[choice / options_.choices_per_prompt];
  }
  std::string_view echoed_text(size_t choice) const {
    const Echo* const echo = echo_of(choice);
    return echo == nullptr ? std::string_view() : echo->text;
  }

  // Generated tokens stand behind the echo, whatever its tokens had room for.
  void leave_echo(size_t choice, TextPosition& position) const {
    const std::string_view echo = echoed_text(choice);
    if (position.bytes < echo.size()) {
      position.advance(echo.substr(position.bytes));
    }
  }

  const AnswerIdentity identity_;
  const AnswerOptions options_;
  const std::unique_ptr<const ChoiceShape> shape_;
  UsageCounter usage_;
};

// With include_usage usage comes as OpenAI sends it: a last chunk of its own
// without choices, and null in all others. Without, it stands on the chunk that
// carries the last finish reason.
class StreamWriter final : public Writer {
 public:
  StreamWriter(
      AnswerIdentity identity,
      AnswerOptions options,
      std::unique_ptr<const ChoiceShape> shape)
      : Writer(std::move(identity), std::move(options), std::move(shape)),
        positions_(options_.choices()) {}

  std::string begin() override {
    std::string events;
    for (size_t choice = 0; choice < options_.choices(); ++choice) {
      Json opening = shape_->opening(choice);
      if (!opening.is_null()) {
        events += chunk(std::move(opening));
      }
      events += begin_echo(choice);
    }
    return events;
  }

  std::string prefill(size_t choice, const PrefillStep& step) override {
    std::string events;
    if (options_.return_progress) {
      Json progress = head(
          shape_->chunk_object(),
          Json::array({shape_->piece(choice, "", nullptr, nullptr)}));
      progress["prompt_progress"] = progress_of(step);
      events += event(std::move(progress));
    }
    if (!step.tokens.empty()) {
      events += piece(choice, "", step.tokens);
    }
    return events;
  }

  std::string delta(size_t choice, const GenerationDelta& delta) override {
    const bool has_logprobs = wants_logprobs() && !delta.tokens.empty();
    leave_echo(choice, positions_[choice]);
    std::string events;
    if (!delta.reasoning.empty()) {
      events += chunk(shape_->reasoning_piece(choice, delta.reasoning));
    }
    if (!delta.text.empty() || has_logprobs) {
      events += piece(choice, delta.text, delta.tokens);
    }
    Json calls = shape_->tool_calls_piece(choice, delta.tool_calls);
    if (!calls.is_null()) {
      events += chunk(std::move(calls));
    }
    return events;
  }

  std::string end(size_t choice, const GenerationEnd& end) override {
    usage_.add(choice, end.stats);
    Json finish = head(
        shape_->chunk_object(),
        Json::array(
            {shape_->piece(choice, "", nullptr, to_string(end.reason))}));
    if (!usage_.is_complete()) {
      return event(std::move(finish));
    }
    if (!options_.include_usage) {
      finish["usage"] = usage_.json();
      return event_of(finish).append(kDoneEvent);
    }
    Json usage = head(shape_->chunk_object(), Json::array());
    usage["usage"] = usage_.json();
    return (event(std::move(finish)) + event_of(usage)).append(kDoneEvent);
  }

 private:
  std::string event(Json value) const {
    if (options_.include_usage) {
      value["usage"] = nullptr;
    }
    return event_of(value);
  }
  std::string chunk(Json choice) const {
    return event(
        head(shape_->chunk_object(), Json::array({std::move(choice)})));
  }

  std::string begin_echo(size_t choice) {
    const Echo* const echo = echo_of(choice);
    if (echo == nullptr) {
      return {};
    }
    const GeneratedToken first = unpredicted(echo->first_token);
    return piece(choice, echo->text, {&first, 1});
  }

  std::string piece(
      size_t choice,
      std::string_view text,
      std::span<const GeneratedToken> tokens) {
    Json logprobs;
    if (wants_logprobs() && !tokens.empty()) {
      shape_->add_logprobs(
          logprobs, tokens, echoed_text(choice), positions_[choice]);
    }
    return chunk(shape_->piece(choice, text, std::move(logprobs), nullptr));
  }

  // As llama.cpp's server has it.
  static Json progress_of(const PrefillStep& step) {
    Json progress;
    progress["total"] = step.total;
    progress["cache"] = step.cached;
    progress["processed"] = step.processed;
    progress["time_ms"] = static_cast<int64_t>(step.elapsed_ms);
    return progress;
  }

  std::vector<TextPosition> positions_; // by choice
};

// Keeps everything until the last choice has ended.
class BodyWriter final : public Writer {
 public:
  BodyWriter(
      AnswerIdentity identity,
      AnswerOptions options,
      std::unique_ptr<const ChoiceShape> shape)
      : Writer(std::move(identity), std::move(options), std::move(shape)),
        choices_(options_.choices()) {}

  std::string begin() override {
    for (size_t choice = 0; choice < choices_.size(); ++choice) {
      if (const Echo* const echo = echo_of(choice)) {
        choices_[choice].content.text = echo->text;
        const GeneratedToken first = unpredicted(echo->first_token);
        add_tokens(choice, {&first, 1});
      }
    }
    return {};
  }

  std::string prefill(size_t choice, const PrefillStep& step) override {
    add_tokens(choice, step.tokens);
    return {};
  }

  std::string delta(size_t choice, const GenerationDelta& delta) override {
    WholeChoice& content = choices_[choice].content;
    content.text += delta.text;
    content.reasoning += delta.reasoning;
    for (const ToolCallPart& part : delta.tool_calls) {
      add_call(content.tool_calls, part);
    }
    leave_echo(choice, choices_[choice].position);
    add_tokens(choice, delta.tokens);
    return {};
  }

  std::string end(size_t choice, const GenerationEnd& end) override {
    usage_.add(choice, end.stats);
    choices_[choice].content.finish_reason = to_string(end.reason);
    return usage_.is_complete() ? body() : std::string();
  }

 private:
  struct Choice {
    WholeChoice content;
    TextPosition position; // of the next token
  };

  static void add_call(
      std::vector<ToolCallPart>& calls,
      const ToolCallPart& part) {
    if (!part.name.empty()) {
      calls.push_back(part);
    } else {
      calls.back().arguments += part.arguments;
    }
    if (part.end == ToolCallPart::End::kVoid) {
      calls.pop_back(); // its text is content
    }
  }

  void add_tokens(size_t choice, std::span<const GeneratedToken> tokens) {
    if (wants_logprobs()) {
      shape_->add_logprobs(
          choices_[choice].content.logprobs,
          tokens,
          echoed_text(choice),
          choices_[choice].position);
    }
  }

  std::string body() const {
    Json list = Json::array();
    for (size_t i = 0; i < choices_.size(); ++i) {
      list.push_back(shape_->whole(i, choices_[i].content));
    }
    Json body = head(shape_->whole_object(), std::move(list));
    body["usage"] = usage_.json();
    return to_text(body);
  }

  std::vector<Choice> choices_;
};

} // namespace

std::string failure_event(const Status& status) {
  return "data: " + error_body(status) + "\n\n";
}

std::unique_ptr<AnswerWriter> make_writer(
    AnswerIdentity identity,
    AnswerOptions options,
    std::unique_ptr<const ChoiceShape> shape) {
  if (options.stream) {
    return std::make_unique<StreamWriter>(
        std::move(identity), std::move(options), std::move(shape));
  }
  return std::make_unique<BodyWriter>(
      std::move(identity), std::move(options), std::move(shape));
}

} // namespace ingle
