// ingle get ORG/NAME: a model from a hub.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/environment.h"

namespace ingle {

// Fetches what isn't there of "org/name" or "org/name@revision" and prints
// where it is, as text or as one JSON object. Ctrl-C ends it and keeps what
// came. Errors: those of plan_download() and download(), kInvalidRequest.
Status
get_from_hub(const Environment& env, const std::string& argument, bool json);

} // namespace ingle
