// The answers of POST /v1/chat/completions.
#include <optional>
#include <utility>

#include "api/call_ids.h"
#include "api/choice_shape.h"

namespace ingle {
namespace {

class ChatShape final : public ChoiceShape {
 public:
  ChatShape(std::string uuid, std::shared_ptr<const Tokenizer> tokenizer)
      : uuid_(std::move(uuid)), logprobs_(std::move(tokenizer)) {}

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

  Json reasoning_piece(size_t choice, std::string_view text) const override {
    Json piece = empty_piece(choice);
    set_reasoning(piece["delta"], text);
    return piece;
  }

  Json tool_calls_piece(size_t choice, std::span<const ToolCallPart> parts)
      const override {
    Json list = Json::array();
    for (const ToolCallPart& part : parts) {
      if (!part.name.empty()) {
        list.push_back(call_of(choice, part, part.index));
      } else if (!part.arguments.empty()) {
        Json call;
        call["index"] = part.index;
        call["function"]["arguments"] = part.arguments;
        list.push_back(std::move(call));
      }
    }
    if (list.empty()) {
      return nullptr;
    }
    Json piece = empty_piece(choice);
    piece["delta"]["tool_calls"] = std::move(list);
    return piece;
  }

  Json whole(size_t index, const WholeChoice& choice) const override {
    Json whole;
    whole["index"] = index;
    Json& message = whole["message"];
    message["role"] = "assistant";
    message["content"] = choice.text;
    if (choice.text.empty() && !choice.tool_calls.empty()) {
      message["content"] = nullptr;
    }
    if (!choice.reasoning.empty()) {
      set_reasoning(message, choice.reasoning);
    }
    for (const ToolCallPart& call : choice.tool_calls) {
      message["tool_calls"].push_back(call_of(index, call, std::nullopt));
    }
    set_logprobs(whole, choice.logprobs);
    whole["finish_reason"] = choice.finish_reason;
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
  static Json empty_piece(size_t choice) {
    Json piece;
    piece["index"] = choice;
    piece["delta"] = Json::object();
    piece["finish_reason"] = nullptr;
    return piece;
  }

  // Clients read one name or the other.
  static void set_reasoning(Json& message, std::string_view text) {
    message["reasoning_content"] = text;
    message["reasoning"] = text;
  }

  // `index`: in a stream.
  Json call_of(
      size_t choice,
      const ToolCallPart& part,
      std::optional<size_t> index) const {
    Json call;
    if (index) {
      call["index"] = *index;
    }
    call["id"] = call_id(uuid_, choice, part.index);
    call["type"] = "function";
    call["function"]["name"] = part.name;
    call["function"]["arguments"] = part.arguments;
    return call;
  }

  static void set_logprobs(Json& choice, Json logprobs) {
    if (!logprobs.is_null()) {
      choice["logprobs"] = std::move(logprobs);
    }
  }

  const std::string uuid_;
  LogprobsWriter logprobs_;
};

} // namespace

std::unique_ptr<AnswerWriter> make_chat_writer(
    AnswerIdentity identity,
    AnswerOptions options,
    std::shared_ptr<const Tokenizer> tokenizer) {
  auto shape = std::make_unique<ChatShape>(identity.uuid, std::move(tokenizer));
  return make_writer(std::move(identity), std::move(options), std::move(shape));
}

} // namespace ingle
