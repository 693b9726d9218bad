// The answers of POST /v1/chat/completions.
#include <utility>

#include "api/choice_shape.h"

namespace ingle {
namespace {

class ChatShape final : public ChoiceShape {
 public:
  explicit ChatShape(std::shared_ptr<const Tokenizer> tokenizer)
      : logprobs_(std::move(tokenizer)) {}

  std::string_view id_prefix() const override {
    return "chatcmpl-";
  }
  std::string_view whole_object() const override {
    return "chat.completion";
  }
  std::string_view chunk_object() const override {
    return "chat.completion.chunk";
  }

  Json opening(size_t choice) const override {
    Json opening;
    opening["index"] = choice;
    opening["delta"]["role"] = "assistant";
    opening["delta"]["content"] = "";
    opening["finish_reason"] = nullptr;
    return opening;
  }

  Json piece(
      size_t choice,
      std::string_view text,
      Json logprobs,
      Json finish_reason) const override {
    Json piece;
    piece["index"] = choice;
    piece["delta"] = Json::object();
    if (!text.empty() || !logprobs.is_null()) {
      piece["delta"]["content"] = text;
    }
    set_logprobs(piece, std::move(logprobs));
    piece["finish_reason"] = std::move(finish_reason);
    return piece;
  }

  Json whole(
      size_t choice,
      std::string_view text,
      Json logprobs,
      std::string_view finish_reason) const override {
    Json whole;
    whole["index"] = choice;
    whole["message"]["role"] = "assistant";
    whole["message"]["content"] = text;
    set_logprobs(whole, std::move(logprobs));
    whole["finish_reason"] = finish_reason;
    return whole;
  }

  void add_logprobs(
      Json& block,
      std::span<const GeneratedToken> tokens,
      std::string_view,
      TextPosition&) const override {
    logprobs_.add_chat(block, tokens);
  }

 private:
  static void set_logprobs(Json& choice, Json logprobs) {
    if (!logprobs.is_null()) {
      choice["logprobs"] = std::move(logprobs);
    }
  }

  LogprobsWriter logprobs_;
};

} // namespace

std::unique_ptr<AnswerWriter> make_chat_writer(
    AnswerIdentity identity,
    AnswerOptions options,
    std::shared_ptr<const Tokenizer> tokenizer) {
  return make_writer(
      std::move(identity),
      std::move(options),
      std::make_unique<ChatShape>(std::move(tokenizer)));
}

} // namespace ingle
