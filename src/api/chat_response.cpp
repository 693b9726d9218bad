// The answers of POST /v1/chat/completions.
#include <utility>

#include "api/answer_json.h"

namespace ingle {
namespace {

constexpr std::string_view kIdPrefix = "chatcmpl-";

Json choice_of(Json delta, Json finish_reason) {
  Json choice;
  choice["index"] = 0;
  choice["delta"] = std::move(delta);
  choice["finish_reason"] = std::move(finish_reason);
  return choice;
}

class ChatWriter final : public AnswerWriter {
 public:
  ChatWriter(AnswerIdentity identity, bool include_usage)
      : chunks_(
            std::move(identity),
            kIdPrefix,
            "chat.completion.chunk",
            include_usage) {}

  std::string begin() override {
    Json delta;
    delta["role"] = "assistant";
    delta["content"] = "";
    return chunks_.chunk(choice_of(std::move(delta), nullptr));
  }

  std::string delta(const GenerationDelta& delta) override {
    if (delta.text.empty()) {
      return {};
    }
    Json content;
    content["content"] = delta.text;
    return chunks_.chunk(choice_of(std::move(content), nullptr));
  }

  std::string end(const GenerationEnd& end) override {
    return chunks_.last(choice_of(Json::object(), to_string(end.reason)), end);
  }

  std::string whole(const std::string& text, const GenerationEnd& end)
      override {
    Json choice;
    choice["index"] = 0;
    choice["message"]["role"] = "assistant";
    choice["message"]["content"] = text;
    choice["finish_reason"] = to_string(end.reason);
    return chunks_.whole("chat.completion", std::move(choice), end);
  }

 private:
  ChunkWriter chunks_;
};

} // namespace

std::unique_ptr<AnswerWriter> make_chat_writer(
    AnswerIdentity identity,
    bool include_usage) {
  return std::make_unique<ChatWriter>(std::move(identity), include_usage);
}

} // namespace ingle
