// Grammars of answers that have to be, or may be, tool calls, in the model's
// own markup.
#pragma once

#include <memory>
#include <string_view>

#include "api/chat_tools.h"
#include "base/status.h"
#include "engine/served_model.h"
#include "text/grammar.h"

namespace ingle {

// The grammar of the answer, behind a thought where the model has one; null:
// nothing has to be followed.
//
// A forced call's arguments follow the tool's schema; where the tool is not
// `strict`, what the grammar can't express of it is left out. With "auto" text
// is free; where a call begins and one of the tools is strict, the call is
// held to the tools, and its arguments to the schema of a strict one.
//
// Errors: kInvalidRequest (tool_choice without such a tool; a strict schema
//         that can't be followed), naming the field.
Result<std::shared_ptr<const Grammar>> compile_tool_choice(
    const ChatTools& tools,
    std::string_view prompt,
    bool may_think,
    const ServedModel& model);

} // namespace ingle
