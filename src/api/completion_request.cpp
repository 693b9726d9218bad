#include "api/completion_request.h"

#include <limits>
#include <utility>

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

using Prompt = decltype(CompletionRequest::prompt);

Result<Prompt> text_prompt(const Json& text, const std::string& path) {
  if (text.get_ref<const std::string&>().empty()) {
    return invalid_field(path, "expected a string that is not empty");
  }
  return Prompt(text.get<std::string>());
}

Result<Prompt> ids_prompt(const Json& array) {
  constexpr uint64_t kLargest = std::numeric_limits<TokenId>::max();
  constexpr std::string_view kExpected = "a token id";
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (const Json& item : array) {
    const std::string path = "prompt[" + std::to_string(ids.size()) + "]";
    if (!item.is_number()) {
      return wrong_type(path, kExpected, item);
    }
    if (!item.is_number_unsigned() || item.get<uint64_t>() > kLargest) {
      return invalid_field(
          path,
          "expected " + std::string(kExpected) + " (an integer from 0 to " +
              std::to_string(kLargest) + "), got " + to_text(item));
    }
    ids.push_back(static_cast<TokenId>(item.get<uint64_t>()));
  }
  return Prompt(std::move(ids));
}

Result<Prompt> read_prompt(const JsonObject& body) {
  const Json* const prompt = body.find("prompt");
  if (prompt == nullptr) {
    return invalid_field("prompt", "is required");
  }
  if (prompt->is_string()) {
    return text_prompt(*prompt, "prompt");
  }
  if (!prompt->is_array()) {
    return wrong_type("prompt", "a string or an array of token ids", *prompt);
  }
  if (prompt->empty()) {
    return invalid_field("prompt", "expected an array that is not empty");
  }
  if (!prompt->front().is_string()) {
    return ids_prompt(*prompt);
  }
  if (prompt->size() > 1) {
    return invalid_field("prompt", "more than one prompt is not supported yet")
        .with_reason("unsupported_parameter");
  }
  return text_prompt(prompt->front(), "prompt[0]");
}

} // namespace

Result<CompletionRequest> parse_completion_request(std::string_view body) {
  INGLE_ASSIGN_OR_RETURN(const Json json, parse_json(body));
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(json, ""));
  CompletionRequest request;
  INGLE_ASSIGN_OR_RETURN(request.options, read_request_options(object));
  INGLE_RETURN_IF_ERROR(refuse_missing_features(object));
  INGLE_ASSIGN_OR_RETURN(request.prompt, read_prompt(object));
  return request;
}

} // namespace ingle
