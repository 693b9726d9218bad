#include "api/chat_request.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "api/json_reader.h"
#include "engine/served_model.h"

namespace ingle {
namespace {

bool is_role(std::string_view role) {
  constexpr std::array<std::string_view, 4> kRoles = {
      "system", "user", "assistant", "tool"};
  for (const std::string_view known : kRoles) {
    if (role == known) {
      return true;
    }
  }
  return false;
}

Result<std::string> flatten_parts(const Json& parts, const std::string& path) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    INGLE_ASSIGN_OR_RETURN(
        const JsonObject part,
        JsonObject::from(parts[i], indexed_path(path, i)));
    INGLE_ASSIGN_OR_RETURN(const auto type, part.get_string("type"));
    if (type != "text") {
      return invalid_field(
          part.path_of("type"),
          "expected \"text\": parts of other types are not supported");
    }
    INGLE_ASSIGN_OR_RETURN(const auto piece, part.get_string("text"));
    if (!piece) {
      return missing_field(part.path_of("text"), "a string");
    }
    text += *piece;
  }
  return text;
}

// Templates iterate the arguments, clients send them as a string of JSON. A
// string that is no JSON object (a model's slip, sent back as history) stays.
Status
parse_arguments(Json& call, const std::string& path, JsonBudget& budget) {
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(call, path));
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject fields, object.require_object("function"));
  INGLE_ASSIGN_OR_RETURN(const auto name, fields.get_string("name"));
  if (!name) {
    return missing_field(fields.path_of("name"), "a string");
  }
  const Json* const arguments = fields.find("arguments");
  if (arguments == nullptr || arguments->is_object()) {
    return {};
  }
  INGLE_ASSIGN_OR_RETURN(const auto text, fields.get_string("arguments"));
  auto parsed =
      text->empty() ? Result<Json>(Json::object()) : parse_json(*text, budget);
  if (budget.is_exceeded) {
    return invalid_field(
        fields.path_of("arguments"),
        "expected calls whose arguments together have at most " +
            std::to_string(kMaxRequestValues) + " values, got more than that");
  }
  if (parsed.is_ok() && parsed->is_object()) {
    call["function"]["arguments"] = *std::move(parsed);
  }
  return {};
}

Status normalise_tool_calls(
    Json& message,
    const std::string& path,
    JsonBudget& budget) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || calls->is_null()) {
    return {};
  }
  const std::string calls_path = path + ".tool_calls";
  if (!calls->is_array()) {
    return wrong_type(calls_path, "an array", *calls);
  }
  for (size_t i = 0; i < calls->size(); ++i) {
    INGLE_RETURN_IF_ERROR(
        parse_arguments((*calls)[i], indexed_path(calls_path, i), budget));
  }
  return {};
}

enum class AbsentContent {
  kRefused,
  kEmpty, // clients send an answer without text back as null
  kStays, // templates ask whether a call has text with it
};

Status normalise_content(
    Json& message,
    const std::string& path,
    AbsentContent absent) {
  constexpr std::string_view kExpected = "a string or an array of text parts";
  const std::string content_path = path + ".content";
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    switch (absent) {
      case AbsentContent::kRefused:
        return content == message.end()
            ? missing_field(content_path, kExpected)
            : wrong_type(content_path, kExpected, *content);
      case AbsentContent::kEmpty:
        message["content"] = "";
        return {};
      case AbsentContent::kStays:
        return {};
    }
  }
  if (content->is_string()) {
    return {};
  }
  if (!content->is_array()) {
    return wrong_type(content_path, kExpected, *content);
  }
  INGLE_ASSIGN_OR_RETURN(
      std::string text, flatten_parts(*content, content_path));
  *content = std::move(text);
  return {};
}

// Templates ask whether a key is there, not whether it says something.
void drop_nulls(Json& message) {
  auto& fields = message.get_ref<Json::object_t&>();
  Json::object_t kept;
  for (auto& [key, value] : fields) {
    if (!value.is_null()) {
      kept.emplace_back(key, std::move(value)); // keys are not there twice
    }
  }
  fields = std::move(kept);
}

// What a model thought is sent back under several names, and templates read
// one or the other.
void spread_reasoning(Json& message) {
  for (const char* const name :
       {"reasoning_content", "reasoning", "thinking"}) {
    const auto found = message.find(name);
    if (found == message.end() || !found->is_string()) {
      continue;
    }
    const std::string thought = found->get<std::string>();
    for (const char* const other : {"reasoning_content", "thinking"}) {
      if (!message.contains(other)) {
        message[other] = thought;
      }
    }
    return;
  }
}

Status
normalise_message(Json& message, const std::string& path, JsonBudget& budget) {
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject object, JsonObject::from(message, path));
  INGLE_ASSIGN_OR_RETURN(auto role, object.get_string("role"));
  if (role == "developer") {
    role = "system";
    message["role"] = *role;
  }
  if (!role || !is_role(*role)) {
    return invalid_field(
        object.path_of("role"),
        "expected \"system\", \"developer\", \"user\", \"assistant\" or "
        "\"tool\"");
  }
  const Json* const calls = object.find("tool_calls");
  const bool has_calls =
      calls != nullptr && calls->is_array() && !calls->empty();
  const AbsentContent absent = role != "assistant" ? AbsentContent::kRefused
      : has_calls                                  ? AbsentContent::kStays
                                                   : AbsentContent::kEmpty;
  INGLE_RETURN_IF_ERROR(normalise_content(message, path, absent));
  INGLE_RETURN_IF_ERROR(normalise_tool_calls(message, path, budget));
  drop_nulls(message);
  spread_reasoning(message);
  return {};
}

Result<std::string> read_messages(Json& body) {
  const auto messages = body.find("messages");
  if (messages == body.end()) {
    return missing_field("messages", "an array of messages");
  }
  if (!messages->is_array()) {
    return wrong_type("messages", "an array", *messages);
  }
  if (messages->empty()) {
    return invalid_field(
        "messages", "expected at least one message, got an empty array");
  }
  JsonBudget budget;
  for (size_t i = 0; i < messages->size(); ++i) {
    INGLE_RETURN_IF_ERROR(
        normalise_message((*messages)[i], indexed_path("messages", i), budget));
  }
  return to_text(*messages);
}

// Fields of answers that ingle does not make yet.
Status refuse_missing_features(const JsonObject& body) {
  for (const char* const name : {"functions", "function_call"}) {
    if (body.find(name) != nullptr) {
      return not_supported_yet(name, "what \"tools\" has replaced");
    }
  }
  const Json* const modalities = body.find("modalities");
  if (modalities != nullptr && *modalities != Json::array({"text"})) {
    return not_supported_yet("modalities", "a value other than [\"text\"]");
  }
  return {};
}

// What the template gets from us.
bool is_own_variable(std::string_view name) {
  constexpr std::array<std::string_view, 3> kOwn = {
      "add_generation_prompt", "messages", "tools"};
  const auto has = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has(kOwn) || has(kSpecialTokens);
}

Status read_template_variables(const JsonObject& body, ChatRequest& request) {
  constexpr std::string_view kField = "chat_template_kwargs";
  const Json* const variables = body.find(kField);
  if (variables == nullptr) {
    return {};
  }
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject object,
      JsonObject::from(*variables, body.path_of(kField)));
  for (const auto& [name, value] : variables->items()) {
    if (!is_own_variable(name)) {
      request.template_variables.emplace_back(name, to_text(value));
      continue;
    }
    const bool changes_nothing = value.is_null() ||
        (name == "add_generation_prompt" && value == Json(true));
    if (!changes_nothing) {
      return invalid_field(
                 object.path_of(name),
                 "expected variables of the template's own, and this one is "
                 "not a request's to set: leave it out")
          .with_reason("unsupported_parameter");
    }
  }
  return {};
}

// Some templates ask how hard to think, others whether. What
// chat_template_kwargs says stands over the effort, and that over the server's
// flag; else the template has a default of its own.
Status read_reasoning(
    const JsonObject& body,
    const GenerationDefaults& defaults,
    ChatRequest& request) {
  constexpr std::string_view kField = "reasoning_effort";
  INGLE_ASSIGN_OR_RETURN(const auto effort, body.get_string(kField));
  const auto add = [&](std::string_view name, const Json& value) {
    if (request.find_variable(name) == nullptr) {
      request.template_variables.emplace_back(name, to_text(value));
    }
  };
  if (effort) {
    add("enable_thinking", *effort != "none");
  } else if (defaults.thinking) {
    add("enable_thinking", *defaults.thinking);
  }
  if (effort && *effort != "none") {
    add(kField, *effort);
  }
  return {};
}

// A model that does not think is sent astray by a high temperature, which its
// file has for when it thinks. One that the request or the server's flag asks
// for is meant.
void cap_temperature(
    const JsonObject& body,
    const GenerationDefaults& defaults,
    ChatRequest& request) {
  constexpr float kCap = 0.7f;
  const std::string* const thinking = request.find_variable("enable_thinking");
  const bool thinks = thinking == nullptr || *thinking != "false";
  const bool is_asked_for =
      body.find("temperature") != nullptr || defaults.has_temperature_flag;
  if (!thinks && !is_asked_for) {
    float& temperature = request.options.sampling.temperature;
    temperature = std::min(temperature, kCap);
  }
}

// `logprobs` switches them on, and so does `top_logprobs` alone.
Result<std::optional<int>> read_logprobs(const JsonObject& body) {
  INGLE_ASSIGN_OR_RETURN(const auto enabled, body.get_bool("logprobs"));
  INGLE_ASSIGN_OR_RETURN(
      const auto top,
      body.get_integer_or_unset("top_logprobs", 0, kMaxTopLogprobs));
  if (enabled == false && top.value_or(0) > 0) {
    return invalid_field(
        "logprobs", "expected true where top_logprobs is given, got false");
  }
  if (enabled.value_or(false) || top.value_or(0) > 0) {
    return std::optional(static_cast<int>(top.value_or(0)));
  }
  return std::optional<int>();
}

} // namespace

const std::string* ChatRequest::find_variable(std::string_view name) const {
  const auto found = std::find_if(
      template_variables.begin(),
      template_variables.end(),
      [&](const auto& variable) { return variable.first == name; });
  return found == template_variables.end() ? nullptr : &found->second;
}

Result<ChatRequest> parse_chat_request(
    std::string_view body,
    const GenerationDefaults& defaults) {
  INGLE_ASSIGN_OR_RETURN(Json json, parse_json(body));
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(json, ""));
  ChatRequest request;
  INGLE_ASSIGN_OR_RETURN(
      request.options,
      read_request_options(object, defaults, /*least_max_tokens=*/1));
  INGLE_ASSIGN_OR_RETURN(request.options.top_logprobs, read_logprobs(object));
  INGLE_ASSIGN_OR_RETURN(request.tools, read_chat_tools(object));
  INGLE_RETURN_IF_ERROR(read_template_variables(object, request));
  INGLE_RETURN_IF_ERROR(refuse_missing_features(object));
  INGLE_RETURN_IF_ERROR(read_reasoning(object, defaults, request));
  cap_temperature(object, defaults, request);
  INGLE_ASSIGN_OR_RETURN(request.messages, read_messages(json));
  return request;
}

} // namespace ingle
