// Where in a conversation's prompt another prompt is likely to go on, known
// before it is read: for models whose layers forget.
#pragma once

#include <vector>

#include "api/chat_request.h"
#include "base/token.h"
#include "engine/served_model.h"

namespace ingle {

// Positions in `prompt`, which is what `request` is rendered and encoded to:
//
// - the end of what every conversation with these system messages and tools
//   begins with;
// - the end of all messages but the last, where it is asked anew;
// - the end of the last one. The next turn's prompt often differs from there
//   on: templates drop what the model thought, and write its calls another way.
//
// Found by rendering such conversations; what the template can't render has no
// position. Ascending, each once, none at 0 or behind the prompt.
//
// Cost: up to three renderings and encodings.
std::vector<int> resume_hints(
    const ChatRequest& request,
    const ServedModel& model,
    const std::vector<TokenId>& prompt);

} // namespace ingle
