// What the commands that deal with the hub's cache have in common.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "cli/environment.h"
#include "hub/download.h"

namespace ingle {

// This process among those of this machine.
Processes this_process();

// The token of $HF_TOKEN, else of the token file; empty: there is none.
// Errors: kInvalidRequest (it has characters that no token has), kIo.
Result<std::string> hub_token(const Environment& env);

// Waits, and says so on standard error; false where `stop` ended it.
bool wait_for_hub(
    std::chrono::seconds time,
    const std::string& why,
    std::stop_token stop);

} // namespace ingle
