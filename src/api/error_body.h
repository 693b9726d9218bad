// OpenAI's error shape, and which HTTP status a failure is.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ingle {

// The HTTP status of a failure; 200 for kOk.
int http_status(const Status& status);

// Longer messages are cut, between characters.
inline constexpr size_t kMaxErrorMessage = 1000; // bytes

// {"error":{"message","type","param","code"}}: param is status.where(), code
// status.reason(); null where they are empty.
std::string error_body(const Status& status);

// A name that a client sent, as messages show it: in double quotes, in
// printable ASCII (all else as \xNN), and cut where it is long.
std::string quote_text(std::string_view text);

} // namespace ingle
