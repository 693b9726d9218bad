// The body of POST /v1/completions.
#pragma once

#include <string>
#include <string_view>

#include "api/request_options.h"
#include "base/status.h"

namespace ingle {

struct CompletionRequest {
  RequestOptions options;
  std::string prompt; // not empty
};

// Errors: kInvalidRequest, naming the place.
Result<CompletionRequest> parse_completion_request(std::string_view body);

} // namespace ingle
