// What a chat request says of tools.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "text/tool_signature.h"

namespace ingle {

class JsonObject;

// What tool_choice and parallel_tool_calls ask for.
struct ToolChoice {
  bool is_none = false; // the model sees no tools
  bool is_required = false; // the answer is one call or more
  std::string name; // of the one tool that has to be called, once; or empty
  bool allows_several = true; // calls in one answer
};

struct ChatTools {
  std::string definitions; // a JSON array, as the client sent it; empty: none
  std::shared_ptr<const ToolSignatures> signatures; // null: none
  ToolChoice choice;
};

// `tools`, `tool_choice` and `parallel_tool_calls`. With tool_choice "none"
// there are no tools.
//
// Errors: kInvalidRequest, naming the place. Whether there is a tool of the
// choice's name is seen later.
Result<ChatTools> read_chat_tools(const JsonObject& body);

} // namespace ingle
