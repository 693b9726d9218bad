// What a chat request says of tools.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "text/tool_signature.h"

namespace ingle {

class JsonObject;

struct ChatTools {
  std::string definitions; // a JSON array, as the client sent it; empty: none
  std::shared_ptr<const ToolSignatures> signatures; // null: none
  bool parallel_calls = true; // false: at most one call in an answer
};

// `tools`, `tool_choice` and `parallel_tool_calls`. With tool_choice "none"
// there are no tools.
//
// Errors: kInvalidRequest, naming the place. A tool_choice that asks for a call
// is refused (reason "unsupported_parameter").
Result<ChatTools> read_chat_tools(const JsonObject& body);

} // namespace ingle
