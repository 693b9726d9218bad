#include "api/call_arguments.h"

#include <algorithm>
#include <utility>

#include "text/lark_text.h"

namespace ingle {
namespace {

const Json* find(const Json& schema, const char* key) {
  const auto found = schema.is_object() ? schema.find(key) : schema.end();
  return schema.is_object() && found != schema.end() ? &*found : nullptr;
}

bool has_type(const Json& schema, std::string_view type) {
  const Json* const given = find(schema, "type");
  return given != nullptr && *given == Json(type);
}

// True iff a value of the schema may be a string: it stands in tags as it is.
bool may_be_string(const Json& schema) {
  if (const Json* const values = find(schema, "enum")) {
    return values->is_array() &&
        std::any_of(values->begin(), values->end(), [](const Json& value) {
             return value.is_string();
           });
  }
  if (const Json* const options = find(schema, "anyOf")) {
    return options->is_array() &&
        std::any_of(options->begin(), options->end(), may_be_string);
  }
  const Json* const type = find(schema, "type");
  if (type == nullptr) {
    return find(schema, "$ref") == nullptr;
  }
  return *type == Json("string") ||
      (type->is_array() &&
       std::find(type->begin(), type->end(), Json("string")) != type->end());
}

// The texts of an enum of strings alone; empty: it is none.
std::vector<std::string> texts_of(const Json& schema) {
  std::vector<std::string> texts;
  const Json* const values = find(schema, "enum");
  if (values != nullptr && values->is_array()) {
    for (const Json& value : *values) {
      if (!value.is_string()) {
        return {};
      }
      texts.push_back(value.get<std::string>());
    }
  }
  return texts;
}

bool is_required(const Json& schema, const std::string& name) {
  const Json* const required = find(schema, "required");
  return required != nullptr && required->is_array() &&
      std::find(required->begin(), required->end(), Json(name)) !=
      required->end();
}

std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  }
  return escaped;
}

std::string alternatives(const std::vector<std::string>& options) {
  std::string all;
  for (const std::string& option : options) {
    all += (all.empty() ? "" : " | ") + option;
  }
  return "(" + all + ")";
}

const Json& no_properties() {
  static const Json kNone = Json::object();
  return kNone;
}

const Json& properties_of(const Json& schema) {
  const Json* const properties = find(schema, "properties");
  return properties != nullptr && properties->is_object() ? *properties
                                                          : no_properties();
}

constexpr int kMaxDepth = 64; // of values in values
constexpr std::string_view kGemmaQuote = "<|\"|>";

} // namespace

std::string CallArguments::add(
    const Json& schema,
    const std::string& path,
    bool is_strict) {
  root_ = &schema;
  path_ = path;
  is_strict_ = is_strict;
  references_.clear();
  switch (markup_.tools.arguments) {
    case ArgumentSyntax::kJson: {
      Json object = schema.is_object() ? schema : Json::object();
      object.emplace("type", Json("object"));
      return add_part(object);
    }
    case ArgumentSyntax::kParameterTags:
      return parameters("\n</parameter>\n", /*is_xml=*/false);
    case ArgumentSyntax::kParamElements:
      return parameters("</param>", /*is_xml=*/true);
    case ArgumentSyntax::kGemma:
      return gemma_object(schema);
  }
  return {};
}

std::string CallArguments::path_of(std::string_view part) const {
  const auto found = paths_.find(part);
  return found == paths_.end() ? std::string() : found->second;
}

// A part of JSON by the schema, which may refer to definitions of the whole.
std::string CallArguments::add_part(const Json& schema) {
  if (is_too_much_) {
    return {};
  }
  Json whole = schema;
  for (const char* const key : {"$defs", "definitions"}) {
    const Json* const definitions = find(*root_, key);
    if (definitions != nullptr && whole.is_object()) {
      whole.emplace(std::string(key), Json(*definitions));
    }
  }
  const std::string name = "json_" + std::to_string(++last_);
  const auto kind = is_strict_ ? GrammarSpec::Kind::kJsonSchema
                               : GrammarSpec::Kind::kLenientJsonSchema;
  parts_.push_back({name, kind, to_text(whole)});
  bytes_ += parts_.back().text.size();
  is_too_much_ = is_too_much_ || bytes_ > kMaxGrammarBytes;
  paths_.emplace(name, path_);
  return "@" + name;
}

std::string CallArguments::add_rule(const std::string& body) {
  const std::string name = "rule_" + std::to_string(++last_);
  rules_ += name + ": " + body + "\n";
  return name;
}

std::string CallArguments::add_text_until(std::string_view end) {
  const LarkText text =
      lark_until(end, markup_, "text_" + std::to_string(++last_));
  rules_ += text.rules;
  return text.reference;
}

// Each in tags of its own, in the schema's order.
std::string CallArguments::parameters(std::string_view end, bool is_xml) {
  const std::string open = is_xml ? "<param name=\"" : "<parameter=";
  const std::string close = is_xml ? "\">" : ">\n";
  std::string all;
  for (const auto& [name, schema] : properties_of(*root_).items()) {
    std::string value;
    if (const auto texts = texts_of(schema); !texts.empty()) {
      std::vector<std::string> options;
      for (const std::string& text : texts) {
        options.push_back(lark_literal(
            (is_xml ? xml_text(text) : text) + std::string(end), markup_));
      }
      value = alternatives(options);
    } else if (!may_be_string(schema)) {
      value = add_part(schema) + " " + lark_literal(end, markup_);
    } else if (is_xml) {
      value =
          "/([^<&]|&(lt|gt|amp|quot|apos);)*/ " + lark_literal(end, markup_);
    } else {
      value = add_text_until(end);
    }
    const std::string parameter =
        lark_literal(open + name + close, markup_) + " " + value;
    all +=
        is_required(*root_, name) ? parameter + " " : "(" + parameter + ")? ";
  }
  return all.empty() ? "" : add_rule(all);
}

// Gemma's syntax.

std::string CallArguments::gemma_string(std::string_view text) {
  const std::string quote(kGemmaQuote);
  return lark_literal(quote + std::string(text) + quote, markup_);
}

std::string CallArguments::gemma_value(const Json& schema) {
  is_too_much_ = is_too_much_ || depth_ == kMaxDepth;
  if (is_too_much_) {
    return {};
  }
  ++depth_;
  std::string value = gemma_value_within(schema);
  --depth_;
  return value;
}

std::string CallArguments::gemma_value_within(const Json& schema) {
  if (const auto texts = texts_of(schema); !texts.empty()) {
    std::vector<std::string> options;
    for (const std::string& text : texts) {
      options.push_back(gemma_string(text));
    }
    return alternatives(options);
  }
  if (const Json* const options = find(schema, "anyOf");
      options != nullptr && options->is_array() && !options->empty()) {
    std::vector<std::string> values;
    for (const Json& option : *options) {
      values.push_back(gemma_value(option));
    }
    return alternatives(values);
  }
  const Json* const reference = find(schema, "$ref");
  if (reference != nullptr && reference->is_string()) {
    return gemma_reference(reference->get<std::string>());
  }
  if (has_type(schema, "string")) {
    return add_rule(
        lark_literal(kGemmaQuote, markup_) + " " + add_text_until(kGemmaQuote));
  }
  if (has_type(schema, "object")) {
    return gemma_object(schema);
  }
  if (has_type(schema, "array")) {
    return gemma_array(schema);
  }
  return may_be_string(schema) ? gemma_any() : add_part(schema);
}

// Properties in the schema's order; commas only between those that are there.
std::string CallArguments::gemma_object(const Json& schema) {
  std::string first; // where none was written yet, from the last one on
  std::string more; // where one was
  const Json& properties = properties_of(schema);
  if (properties.empty() && &schema != root_) {
    return gemma_any();
  }
  for (auto it = properties.rbegin(); it != properties.rend(); ++it) {
    const std::string pair =
        lark_literal(it.key() + ":", markup_) + " " + gemma_value(it.value());
    const std::string with = add_rule(pair + " " + more);
    const bool required = is_required(schema, it.key());
    first = required ? with : add_rule(with + " | " + first);
    more =
        add_rule("\",\" " + with + (required ? std::string() : " | " + more));
  }
  return add_rule("\"{\" " + first + " \"}\"");
}

std::string CallArguments::gemma_array(const Json& schema) {
  const Json* const items = find(schema, "items");
  const std::string item = items != nullptr ? gemma_value(*items) : gemma_any();
  const Json* const least = find(schema, "minItems");
  const bool may_be_empty =
      least == nullptr || !least->is_number_integer() || *least == Json(0);
  const std::string list = item + " (\",\" " + item + ")*";
  return add_rule(
      "\"[\" " + (may_be_empty ? "(" + list + ")?" : list) + " \"]\"");
}

std::string CallArguments::gemma_reference(const std::string& reference) {
  const auto known = references_.find(reference);
  if (known != references_.end()) {
    return known->second;
  }
  const Json* const schema = resolve(reference);
  if (schema == nullptr) {
    return add_part(Json{{"$ref", reference}}); // whose error says so
  }
  const std::string name = "ref_" + std::to_string(++last_);
  references_.emplace(reference, name);
  rules_ += name + ": " + gemma_value(*schema) + "\n";
  return name;
}

const Json* CallArguments::resolve(const std::string& reference) const {
  for (const char* const key : {"$defs", "definitions"}) {
    const std::string prefix = std::string("#/") + key + "/";
    const Json* const definitions = find(*root_, key);
    if (reference.starts_with(prefix) && definitions != nullptr) {
      return find(*definitions, reference.substr(prefix.size()).c_str());
    }
  }
  return nullptr;
}

// Any value.
std::string CallArguments::gemma_any() {
  const auto known = references_.find("");
  if (known != references_.end()) {
    return known->second;
  }
  const std::string any = "any_" + std::to_string(++last_);
  references_.emplace("", any);
  const std::string text =
      lark_literal(kGemmaQuote, markup_) + " " + add_text_until(kGemmaQuote);
  const std::string plain = add_part({{"type", {"number", "boolean", "null"}}});
  const std::string pair = "/[A-Za-z_][A-Za-z0-9_]*/ \":\" " + any;
  rules_ += any + ": " + text + " | " + plain + " | \"[\" (" + any +
      " (\",\" " + any + ")*)? \"]\" | \"{\" (" + pair + " (\",\" " + pair +
      ")*)? \"}\"\n";
  return any;
}

} // namespace ingle
