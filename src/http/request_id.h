// The id of a request: in its log line, its x-request-id header and, behind a
// prefix, in its answer.
#pragma once

#include <string>

namespace ingle {

// A random UUID (version 4). Threads: any.
std::string make_request_id();

} // namespace ingle
