#include "api/chat_tools.h"

#include <array>
#include <utility>

#include "api/json_reader.h"

namespace ingle {
namespace {

Result<ToolChoice> read_tool_choice(const JsonObject& body) {
  const std::string path = "tool_choice";
  ToolChoice read;
  INGLE_ASSIGN_OR_RETURN(
      const auto parallel, body.get_bool("parallel_tool_calls"));
  read.allows_several = parallel.value_or(true);
  const Json* const choice = body.find(path);
  if (choice == nullptr || *choice == Json("auto")) {
    return read;
  }
  if (*choice == Json("none")) {
    read.is_none = true;
    return read;
  }
  read.is_required = true;
  if (*choice == Json("required")) {
    return read;
  }
  if (!choice->is_object()) {
    return invalid_field(
        path,
        "expected \"none\", \"auto\", \"required\" or an object that names a "
        "tool");
  }
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject object, JsonObject::from(*choice, path));
  INGLE_ASSIGN_OR_RETURN(const auto type, object.get_string("type"));
  if (type != "function") {
    return invalid_field(object.path_of("type"), "expected \"function\"");
  }
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject fields, object.require_object("function"));
  INGLE_ASSIGN_OR_RETURN(const auto name, fields.get_string("name"));
  if (!name || name->empty()) {
    return missing_field(fields.path_of("name"), "the name of a tool");
  }
  read.name = *name;
  read.allows_several = false;
  return read;
}

Status check_tool(const Json& tool, const std::string& path) {
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(tool, path));
  INGLE_ASSIGN_OR_RETURN(const auto type, object.get_string("type"));
  if (type != "function") {
    return invalid_field(
        object.path_of("type"),
        "expected \"function\": tools of other types are not supported");
  }
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject fields, object.require_object("function"));
  INGLE_ASSIGN_OR_RETURN(const auto name, fields.get_string("name"));
  return name ? Status() : missing_field(fields.path_of("name"), "a string");
}

// The types that a schema's own "type" names.
JsonTypes types_of_name(const Json& name) {
  constexpr std::array<std::pair<std::string_view, JsonTypes>, 7> kTypes = {
      {{"string", kJsonString},
       {"integer", kJsonNumber},
       {"number", kJsonNumber},
       {"boolean", kJsonBool},
       {"null", kJsonNull},
       {"object", kJsonObject},
       {"array", kJsonArray}}};
  for (const auto& [type, bits] : kTypes) {
    if (name == Json(type)) {
      return bits;
    }
  }
  return kJsonAny;
}

JsonTypes type_of_value(const Json& value) {
  return value.is_string() ? kJsonString
      : value.is_number()  ? kJsonNumber
      : value.is_boolean() ? kJsonBool
      : value.is_null()    ? kJsonNull
      : value.is_object()  ? kJsonObject
                           : kJsonArray;
}

// What `get` gives for any of a list's items.
template <typename F>
JsonTypes any_of(const Json& list, F get) {
  JsonTypes types = 0;
  if (list.is_array()) {
    for (const Json& item : list) {
      types |= get(item);
    }
  }
  return types == 0 ? kJsonAny : types;
}

// The types that a schema allows at most.
JsonTypes types_of(const Json& schema) {
  if (!schema.is_object()) {
    return kJsonAny;
  }
  JsonTypes types = kJsonAny;
  if (const auto type = schema.find("type"); type != schema.end()) {
    types &=
        type->is_array() ? any_of(*type, types_of_name) : types_of_name(*type);
  }
  if (const auto value = schema.find("const"); value != schema.end()) {
    types &= type_of_value(*value);
  }
  if (const auto values = schema.find("enum"); values != schema.end()) {
    types &= any_of(*values, type_of_value);
  }
  for (const char* const key : {"anyOf", "oneOf"}) {
    if (const auto schemas = schema.find(key); schemas != schema.end()) {
      types &= any_of(*schemas, types_of);
    }
  }
  return types == 0 ? kJsonAny : types;
}

// Schemas are for the template to print, so one that makes no sense is no
// error: such a parameter may be anything.
ToolParameters parameters_of(const Json& function) {
  ToolParameters parameters;
  const auto schema = function.find("parameters");
  if (schema == function.end() || !schema->is_object()) {
    return parameters;
  }
  const auto properties = schema->find("properties");
  if (properties == schema->end() || !properties->is_object()) {
    return parameters;
  }
  for (const auto& [name, of_parameter] : properties->items()) {
    parameters.emplace(name, types_of(of_parameter));
  }
  return parameters;
}

} // namespace

Result<ChatTools> read_chat_tools(const JsonObject& body) {
  ChatTools read;
  INGLE_ASSIGN_OR_RETURN(read.choice, read_tool_choice(body));
  const Json* const tools = body.find("tools");
  if (tools == nullptr) {
    return read;
  }
  if (!tools->is_array()) {
    return wrong_type("tools", "an array", *tools);
  }
  ToolSignatures signatures;
  for (size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    INGLE_RETURN_IF_ERROR(check_tool(tool, indexed_path("tools", i)));
    const Json& function = tool.at("function");
    signatures.emplace(
        function.at("name").get<std::string>(), parameters_of(function));
  }
  if (!read.choice.is_none && !tools->empty()) {
    read.definitions = to_text(*tools);
    read.signatures =
        std::make_shared<const ToolSignatures>(std::move(signatures));
  }
  return read;
}

} // namespace ingle
