// The body of POST /v1/completions.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/request_options.h"
#include "base/status.h"
#include "base/token.h"

namespace ingle {

struct CompletionRequest {
  RequestOptions options;
  // Text, or the ids of its tokens. Not empty; ids are not negative, but may
  // be none that the model has.
  std::variant<std::string, std::vector<TokenId>> prompt;
};

// `prompt` is a string, an array of token ids, or an array of one string.
//
// Errors: kInvalidRequest, naming the place.
Result<CompletionRequest> parse_completion_request(std::string_view body);

} // namespace ingle
