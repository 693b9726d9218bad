#include "api/completion_request.h"

#include <limits>
#include <utility>

#include "api/json_reader.h"

namespace ingle {
namespace {

constexpr std::string_view kPromptTypes =
    "a string, an array of token ids, or an array of these";

// Choosing among several and filling a gap are answers of another shape: to
// leave them out silently would be wrong.
Status refuse_missing_features(const JsonObject& body, int n) {
  INGLE_ASSIGN_OR_RETURN(
      const auto best_of,
      body.get_integer("best_of", 1, std::numeric_limits<int64_t>::max()));
  if (best_of && *best_of != n) {
    return not_supported_yet("best_of", "a value other than n");
  }
  INGLE_ASSIGN_OR_RETURN(const auto suffix, body.get_string("suffix"));
  if (suffix && !suffix->empty()) {
    return not_supported_yet("suffix", "a suffix");
  }
  return {};
}

Result<CompletionPrompt> read_text(const Json& text, const std::string& path) {
  if (text.get_ref<const std::string&>().empty()) {
    return invalid_field(path, "expected a string that is not empty");
  }
  return CompletionPrompt{path, text.get<std::string>()};
}

Result<CompletionPrompt> read_ids(const Json& array, const std::string& path) {
  INGLE_ASSIGN_OR_RETURN(std::vector<TokenId> ids, token_ids(array, path));
  if (ids.empty()) {
    return invalid_field(path, "expected an array that is not empty");
  }
  return CompletionPrompt{path, std::move(ids)};
}

Result<std::vector<CompletionPrompt>> read_prompts(const JsonObject& body) {
  const std::string path = "prompt";
  const Json* const prompt = body.find(path);
  if (prompt == nullptr) {
    return missing_field(path, kPromptTypes);
  }
  std::vector<CompletionPrompt> prompts;
  if (prompt->is_string()) {
    INGLE_ASSIGN_OR_RETURN(prompts.emplace_back(), read_text(*prompt, path));
    return prompts;
  }
  if (!prompt->is_array()) {
    return wrong_type(path, kPromptTypes, *prompt);
  }
  const bool several = !prompt->empty() &&
      (prompt->front().is_string() || prompt->front().is_array());
  if (!several) {
    INGLE_ASSIGN_OR_RETURN(prompts.emplace_back(), read_ids(*prompt, path));
    return prompts;
  }
  for (size_t i = 0; i < prompt->size(); ++i) {
    const Json& item = (*prompt)[i];
    const std::string item_path = indexed_path(path, i);
    if (!item.is_string() && !item.is_array()) {
      return wrong_type(item_path, "a string or an array of token ids", item);
    }
    INGLE_ASSIGN_OR_RETURN(
        prompts.emplace_back(),
        item.is_string() ? read_text(item, item_path)
                         : read_ids(item, item_path));
  }
  return prompts;
}

Status check_choices(const CompletionRequest& request) {
  const size_t choices =
      request.prompts.size() * static_cast<size_t>(request.options.n);
  if (choices > static_cast<size_t>(kMaxChoices)) {
    return invalid_field(
        "prompt",
        "expected at most " + std::to_string(kMaxChoices) +
            " answers (prompts times n), got " + std::to_string(choices));
  }
  return {};
}

} // namespace

Result<CompletionRequest> parse_completion_request(
    std::string_view body,
    const GenerationDefaults& defaults) {
  INGLE_ASSIGN_OR_RETURN(const Json json, parse_json(body));
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(json, ""));
  CompletionRequest request;
  INGLE_ASSIGN_OR_RETURN(
      request.options,
      read_request_options(object, defaults, /*least_max_tokens=*/0));
  INGLE_ASSIGN_OR_RETURN(
      const auto logprobs,
      object.get_integer_or_unset("logprobs", 0, kMaxTopLogprobs));
  if (logprobs) {
    request.options.top_logprobs = static_cast<int>(*logprobs);
  }
  INGLE_ASSIGN_OR_RETURN(const auto echo, object.get_bool("echo"));
  request.echo = echo.value_or(false);
  INGLE_RETURN_IF_ERROR(refuse_missing_features(object, request.options.n));
  INGLE_ASSIGN_OR_RETURN(request.prompts, read_prompts(object));
  INGLE_RETURN_IF_ERROR(check_choices(request));
  return request;
}

} // namespace ingle
