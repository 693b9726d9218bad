// The keys that a server asks its clients for.
#pragma once

#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

// Read where no key is given as a flag, so that `ps` doesn't show it.
inline constexpr const char* kApiKeyVariable = "INGLE_API_KEY";

// The keys in `given` and those in `file`, one on each line, blank lines left
// out. `file` may be empty: none.
// Errors: those of reading the file; kInvalidRequest: a file without a key, or
// a key that an HTTP header can't carry (it has blanks or is not ASCII).
Result<std::vector<std::string>> read_api_keys(
    FileSystem& fs,
    std::vector<std::string> given,
    const std::string& file);

} // namespace ingle
