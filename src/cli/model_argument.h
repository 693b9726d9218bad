// --model NAME_OR_FOLDER -> a folder.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/environment.h"

namespace ingle {

struct ModelPlace {
  std::string name; // as clients and tables see it
  std::string folder;
};

// A path to a folder, the name of a model of this machine ("name", "org/name",
// "org/name@revision"), a part of it that only one has, or "" for the one that
// pick_model() picks. Of several that have the part, those that can't be loaded
// don't count, unless none can. Errors: kNotFound, kInvalidRequest (several
// match); the message lists what there is and says what to do.
Result<ModelPlace> resolve_model(
    const Environment& env,
    const std::string& argument);

} // namespace ingle
