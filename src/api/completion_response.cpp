// The answers of POST /v1/completions.
#include <utility>

#include "api/choice_shape.h"

namespace ingle {
namespace {

class CompletionShape final : public ChoiceShape {
 public:
  explicit CompletionShape(std::shared_ptr<const Tokenizer> tokenizer)
      : logprobs_(std::move(tokenizer)) {}

  std::string_view id_prefix() const override {
    return "cmpl-";
  }
  std::string_view whole_object() const override {
    return "text_completion";
  }
  std::string_view chunk_object() const override {
    return "text_completion";
  }

  Json opening(size_t) const override {
    return nullptr;
  }

  Json piece(
      size_t choice,
      std::string_view text,
      Json logprobs,
      Json finish_reason) const override {
    Json piece;
    piece["index"] = choice;
    piece["text"] = text;
    piece["logprobs"] = std::move(logprobs);
    piece["finish_reason"] = std::move(finish_reason);
    return piece;
  }

  // Completions have neither.
  Json reasoning_piece(size_t, std::string_view) const override {
    return nullptr;
  }
  Json tool_calls_piece(size_t, std::span<const ToolCallPart>) const override {
    return nullptr;
  }

  Json whole(size_t index, const WholeChoice& choice) const override {
    return piece(index, choice.text, choice.logprobs, choice.finish_reason);
  }

  void add_logprobs(
      Json& block,
      std::span<const GeneratedToken> tokens,
      std::string_view echo,
      TextPosition& position) const override {
    logprobs_.add_completion(block, tokens, echo, position);
  }

 private:
  LogprobsWriter logprobs_;
};

} // namespace

std::unique_ptr<AnswerWriter> make_completion_writer(
    AnswerIdentity identity,
    AnswerOptions options,
    std::shared_ptr<const Tokenizer> tokenizer) {
  return make_writer(
      std::move(identity),
      std::move(options),
      std::make_unique<CompletionShape>(std::move(tokenizer)));
}

} // namespace ingle
