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

// Text, or the ids of its tokens. Not empty; ids are not negative, but may be
// none that the model has.
struct CompletionPrompt {
  std::string path; // where it stands in the body
  std::variant<std::string, std::vector<TokenId>> content;
};

struct CompletionRequest {
  RequestOptions options;
  std::vector<CompletionPrompt> prompts; // at least one
  bool echo = false; // the answer begins with the prompt
};

// `prompt` is a string, an array of token ids, or an array of these.
//
// Errors: kInvalidRequest, naming the place.
Result<CompletionRequest> parse_completion_request(
    std::string_view body,
    const GenerationDefaults& defaults);

} // namespace ingle
