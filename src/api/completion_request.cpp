#include "api/completion_request.h"

#include <limits>

#include "api/json_reader.h"

namespace ingle {
namespace {

// Echoing and choosing among several are answers of another shape: to leave
// them out silently would be wrong.
Status refuse_missing_features(const JsonObject& body) {
  INGLE_ASSIGN_OR_RETURN(const auto echo, body.get_bool("echo"));
  if (echo.value_or(false)) {
    return invalid_field("echo", "echoing the prompt is not supported yet")
        .with_reason("unsupported_parameter");
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto best_of,
      body.get_integer("best_of", 1, std::numeric_limits<int64_t>::max()));
  if (best_of.value_or(1) != 1) {
    return invalid_field("best_of", "more than 1 is not supported yet")
        .with_reason("unsupported_parameter");
  }
  INGLE_ASSIGN_OR_RETURN(const auto suffix, body.get_string("suffix"));
  if (suffix && !suffix->empty()) {
    return invalid_field("suffix", "a suffix is not supported yet")
        .with_reason("unsupported_parameter");
  }
  return {};
}

} // namespace

Result<CompletionRequest> parse_completion_request(std::string_view body) {
  INGLE_ASSIGN_OR_RETURN(const Json json, parse_json(body));
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(json, ""));
  CompletionRequest request;
  INGLE_ASSIGN_OR_RETURN(request.options, read_request_options(object));
  INGLE_RETURN_IF_ERROR(refuse_missing_features(object));
  INGLE_ASSIGN_OR_RETURN(auto prompt, object.get_string("prompt"));
  if (!prompt) {
    return invalid_field("prompt", "is required");
  }
  if (prompt->empty()) {
    return invalid_field("prompt", "expected a string that is not empty");
  }
  request.prompt = *std::move(prompt);
  return request;
}

} // namespace ingle
