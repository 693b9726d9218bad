// OpenAI's error shape, and which HTTP status a failure is.
#pragma once

#include <string>

#include "base/status.h"

namespace ingle {

// The HTTP status of a failure; 200 for kOk.
int http_status(const Status& status);

// {"error":{"message","type","param","code"}}: param is status.where(), code
// status.reason(); null where they are empty.
std::string error_body(const Status& status);

} // namespace ingle
