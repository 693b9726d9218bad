#include "api/resume_hints.h"

#include <algorithm>

#include "api/json_reader.h"
#include "api/prompt.h"

namespace ingle {
namespace {

// What no message begins with.
constexpr char kOther[] = "\x1a";

// Tokens that the conversation's prompt and `prompt` have in common; 0 where it
// can't be rendered.
int shared_with(
    const ChatRequest& request,
    Json messages,
    const ServedModel& model,
    const std::vector<TokenId>& prompt) {
  ChatRequest other;
  other.messages = to_text(messages);
  other.tools = request.tools;
  other.template_variables = request.template_variables;
  const auto rendered = render_chat(other, model, PromptEnd::kMessage);
  if (!rendered.is_ok()) {
    return 0;
  }
  const auto ids = encode_chat(*rendered, model);
  if (!ids.is_ok()) {
    return 0;
  }
  return static_cast<int>(
      std::mismatch(prompt.begin(), prompt.end(), ids->begin(), ids->end())
          .first -
      prompt.begin());
}

// The system messages in front, and a user who says something else.
Json other_conversation(const Json& messages) {
  Json other = Json::array();
  for (const Json& message : messages) {
    if (message["role"] != "system") {
      break;
    }
    other.push_back(message);
  }
  other.push_back({{"role", "user"}, {"content", kOther}});
  return other;
}

} // namespace

std::vector<int> resume_hints(
    const ChatRequest& request,
    const ServedModel& model,
    const std::vector<TokenId>& prompt) {
  const Json messages =
      Json::parse(request.messages, nullptr, /*allow_exceptions=*/false);
  Json all_but_last = messages;
  all_but_last.erase(all_but_last.size() - 1);
  std::vector<int> hints;
  for (const Json& each :
       {other_conversation(messages), all_but_last, messages}) {
    const int shared =
        each.empty() ? 0 : shared_with(request, each, model, prompt);
    if (shared > 0 && shared < std::ssize(prompt)) {
      hints.push_back(shared);
    }
  }
  std::sort(hints.begin(), hints.end());
  hints.erase(std::unique(hints.begin(), hints.end()), hints.end());
  return hints;
}

} // namespace ingle
