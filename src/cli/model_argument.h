// --model NAME_OR_FOLDER -> a folder.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/environment.h"

namespace ingle {

// A path to a folder, the name of an imported model or a part of it that only
// one has, or "" for the default model.
// Errors: kNotFound, kInvalidRequest (several match); the message lists what
// there is and says what to do.
Result<std::string> resolve_model(
    const Environment& env,
    const std::string& argument);

// Names of the imported models, sorted. None where there is no such folder.
Result<std::vector<std::string>> list_models(const Environment& env);

} // namespace ingle
