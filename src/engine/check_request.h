// What a generation may ask for.
#pragma once

#include "base/status.h"
#include "engine/generator.h"
#include "engine/served_model.h"

namespace ingle {

// Errors: kInvalidRequest. where() is the field's name, as it is spelled in
// GenerationRequest or SamplingParams; the message says what it may hold. The
// context is the last that is looked at (reason "context_length_exceeded"; of
// one that the memory doesn't hold, kContextOverBudget).
Status check_request(
    const GenerationRequest& request,
    const ServedModel& model);

} // namespace ingle
