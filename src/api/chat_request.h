// The body of POST /v1/chat/completions, and of POST /apply-template.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/chat_tools.h"
#include "api/request_options.h"
#include "base/status.h"

namespace ingle {

struct ChatRequest {
  RequestOptions options;
  // A JSON array in the form templates expect: role developer is system,
  // arrays of text parts are one string, the arguments of tool calls are
  // objects, an assistant without content or calls said "", keys that are null
  // are gone, and what the model thought stands in reasoning_content and in
  // thinking. Everything else of a message is as the client sent it.
  std::string messages;
  ChatTools tools;
  // chat_template_kwargs: name, JSON value. None that the template gets from
  // us, but for whether to think, and how hard.
  std::vector<std::pair<std::string, std::string>> template_variables;

  // The JSON value of a template variable, or null.
  const std::string* find_variable(std::string_view name) const;
};

// Errors: kInvalidRequest, naming the place. A tool_choice that asks for a
// call, and chat_template_kwargs that would replace what the template gets from
// us, are refused (reason "unsupported_parameter").
Result<ChatRequest> parse_chat_request(
    std::string_view body,
    const GenerationDefaults& defaults);

} // namespace ingle
