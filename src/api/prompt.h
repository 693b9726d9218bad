// From a parsed request to what the engine generates from.
#pragma once

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "base/status.h"
#include "engine/generator.h"
#include "engine/served_model.h"

namespace ingle {

// No piece of a vocabulary worth counting is longer: text of more bytes per
// token of the context doesn't fit, and is refused without being encoded.
inline constexpr size_t kMaxBytesPerToken = 256;

// Renders the model's chat template and encodes it; a bos token that both the
// template and the tokenizer put in front is there once, and an eos token that
// the tokenizer appends is not there. Without max_tokens the answer may take
// what is left of the context.
//
// Errors: kInvalidRequest (the template's own, reason "template_error"; a
//         prompt and an answer that don't fit, reason
//         "context_length_exceeded"; a model without a template).
Result<GenerationRequest> make_generation(
    const ChatRequest& request,
    const ServedModel& model);

// The text as it is, with the tokenizer's own special tokens; or the ids, as
// they are. Without max_tokens the answer has up to 512 tokens, within the
// context.
//
// Errors: as above.
Result<GenerationRequest> make_generation(
    const CompletionRequest& request,
    const ServedModel& model);

} // namespace ingle
