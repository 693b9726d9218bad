// The answers of POST /v1/completions.
#include <utility>

#include "api/answer_json.h"

namespace ingle {
namespace {

constexpr std::string_view kIdPrefix = "cmpl-";
constexpr std::string_view kObject = "text_completion";

Json choice_of(const std::string& text, Json finish_reason) {
  Json choice;
  choice["index"] = 0;
  choice["text"] = text;
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = std::move(finish_reason);
  return choice;
}

class CompletionWriter final : public AnswerWriter {
 public:
  CompletionWriter(AnswerIdentity identity, bool include_usage)
      : chunks_(std::move(identity), kIdPrefix, kObject, include_usage) {}

  std::string begin() override {
    return {};
  }

  std::string delta(const GenerationDelta& delta) override {
    return delta.text.empty() ? std::string()
                              : chunks_.chunk(choice_of(delta.text, nullptr));
  }

  std::string end(const GenerationEnd& end) override {
    return chunks_.last(choice_of("", to_string(end.reason)), end);
  }

  std::string whole(const std::string& text, const GenerationEnd& end)
      override {
    return chunks_.whole(kObject, choice_of(text, to_string(end.reason)), end);
  }

 private:
  ChunkWriter chunks_;
};

} // namespace

std::unique_ptr<AnswerWriter> make_completion_writer(
    AnswerIdentity identity,
    bool include_usage) {
  return std::make_unique<CompletionWriter>(std::move(identity), include_usage);
}

} // namespace ingle
