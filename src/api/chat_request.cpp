#include "api/chat_request.h"

#include <array>
#include <optional>

#include "api/json_reader.h"

namespace ingle {
namespace {

std::string indexed(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

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
        const JsonObject part, JsonObject::from(parts[i], indexed(path, i)));
    INGLE_ASSIGN_OR_RETURN(const auto type, part.get_string("type"));
    if (type != "text") {
      return invalid_field(
          part.path_of("type"), "only \"text\" parts are supported");
    }
    INGLE_ASSIGN_OR_RETURN(const auto piece, part.get_string("text"));
    if (!piece) {
      return invalid_field(part.path_of("text"), "is required");
    }
    text += *piece;
  }
  return text;
}

// Templates iterate the arguments, clients send them as a string of JSON. A
// string that is no JSON object (a model's slip, sent back as history) stays.
Status parse_arguments(Json& call, const std::string& path) {
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(call, path));
  const std::string function_path = object.path_of("function");
  const Json* const function = object.find("function");
  if (function == nullptr) {
    return invalid_field(function_path, "is required");
  }
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject fields, JsonObject::from(*function, function_path));
  INGLE_ASSIGN_OR_RETURN(const auto name, fields.get_string("name"));
  if (!name) {
    return invalid_field(fields.path_of("name"), "is required");
  }
  const Json* const arguments = fields.find("arguments");
  if (arguments == nullptr || arguments->is_object()) {
    return {};
  }
  INGLE_ASSIGN_OR_RETURN(const auto text, fields.get_string("arguments"));
  auto parsed =
      text->empty() ? Result<Json>(Json::object()) : parse_json(*text);
  if (parsed.is_ok() && parsed->is_object()) {
    call["function"]["arguments"] = *std::move(parsed);
  }
  return {};
}

Status normalise_tool_calls(Json& message, const std::string& path) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || calls->is_null()) {
    return {};
  }
  const std::string calls_path = path + ".tool_calls";
  if (!calls->is_array()) {
    return wrong_type(calls_path, "an array", *calls);
  }
  for (size_t i = 0; i < calls->size(); ++i) {
    INGLE_RETURN_IF_ERROR(parse_arguments((*calls)[i], indexed(calls_path, i)));
  }
  return {};
}

Status
normalise_content(Json& message, const std::string& path, bool may_be_absent) {
  constexpr std::string_view kExpected = "a string or an array of text parts";
  const std::string content_path = path + ".content";
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    if (may_be_absent) {
      return {};
    }
    return content == message.end()
        ? invalid_field(content_path, "is required")
        : wrong_type(content_path, kExpected, *content);
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

Status normalise_message(Json& message, const std::string& path) {
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
  const bool has_calls = role == "assistant" && calls != nullptr &&
      calls->is_array() && !calls->empty();
  INGLE_RETURN_IF_ERROR(normalise_content(message, path, has_calls));
  return normalise_tool_calls(message, path);
}

Result<std::string> read_messages(Json& body) {
  const auto messages = body.find("messages");
  if (messages == body.end()) {
    return invalid_field("messages", "is required");
  }
  if (!messages->is_array()) {
    return wrong_type("messages", "an array", *messages);
  }
  if (messages->empty()) {
    return invalid_field("messages", "at least one message is required");
  }
  for (size_t i = 0; i < messages->size(); ++i) {
    INGLE_RETURN_IF_ERROR(
        normalise_message((*messages)[i], indexed("messages", i)));
  }
  return to_text(*messages);
}

// Returns false for "none": the model shall see no tools.
Result<bool> may_call_tools(const JsonObject& body) {
  constexpr std::string_view kField = "tool_choice";
  const Json* const choice = body.find(kField);
  if (choice == nullptr || *choice == Json("auto")) {
    return true;
  }
  if (*choice == Json("none")) {
    return false;
  }
  const bool names_a_tool = choice->is_object() && choice->contains("type") &&
      choice->at("type").is_string();
  if (names_a_tool || *choice == Json("required")) {
    return invalid_field(
               body.path_of(kField),
               "making the model call a tool is not supported yet")
        .with_reason("unsupported_parameter");
  }
  return invalid_field(
      body.path_of(kField),
      "expected \"none\", \"auto\", \"required\" or an object that names a "
      "tool");
}

Result<std::string> read_tools(const JsonObject& body) {
  INGLE_ASSIGN_OR_RETURN(const bool enabled, may_call_tools(body));
  const Json* const tools = body.find("tools");
  if (tools == nullptr) {
    return std::string();
  }
  if (!tools->is_array()) {
    return wrong_type("tools", "an array", *tools);
  }
  for (size_t i = 0; i < tools->size(); ++i) {
    INGLE_RETURN_IF_ERROR(
        JsonObject::from((*tools)[i], indexed("tools", i)).status());
  }
  return tools->empty() || !enabled ? std::string() : to_text(*tools);
}

} // namespace

Result<ChatRequest> parse_chat_request(std::string_view body) {
  INGLE_ASSIGN_OR_RETURN(Json json, parse_json(body));
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(json, ""));
  ChatRequest request;
  INGLE_ASSIGN_OR_RETURN(request.options, read_request_options(object));
  INGLE_ASSIGN_OR_RETURN(request.tools, read_tools(object));
  if (const Json* const variables = object.find("chat_template_kwargs")) {
    INGLE_RETURN_IF_ERROR(
        JsonObject::from(*variables, "chat_template_kwargs").status());
    for (const auto& [name, value] : variables->items()) {
      request.template_variables.emplace_back(name, to_text(value));
    }
  }
  INGLE_ASSIGN_OR_RETURN(request.messages, read_messages(json));
  return request;
}

} // namespace ingle
