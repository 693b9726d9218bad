// Runs another program, without a shell.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace ingle {

// Runs argv[0] (looked up in PATH) to its end; its output goes to our standard
// error. Errors: kNotFound (no such program), kInternal (it failed: the
// message has its exit code).
Status run_program(const std::vector<std::string>& argv);

} // namespace ingle
