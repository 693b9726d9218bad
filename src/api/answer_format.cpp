#include "api/answer_format.h"

#include <array>
#include <utility>

#include "api/error_body.h"
#include "api/json_reader.h"
#include "api/prompt.h"
#include "text/lark_text.h"

namespace ingle {
namespace {

using Kind = GrammarSpec::Kind;

Result<std::optional<AnswerFormat>> read_response_format(
    const JsonObject& body) {
  const Json* const value = body.find("response_format");
  if (value == nullptr) {
    return std::optional<AnswerFormat>();
  }
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject format, JsonObject::from(*value, "response_format"));
  INGLE_ASSIGN_OR_RETURN(const auto type, format.get_string("type"));
  if (type == "text") {
    return std::optional<AnswerFormat>();
  }
  if (type == "json_object") {
    return std::optional(AnswerFormat{any_json_object(), "response_format"});
  }
  if (type != "json_schema") {
    return invalid_field(
        format.path_of("type"),
        "expected \"text\", \"json_object\" or \"json_schema\"");
  }
  const std::string path = format.path_of("json_schema");
  const Json* const named = format.find("json_schema");
  if (named == nullptr) {
    return missing_field(path, "an object with a schema");
  }
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject fields, JsonObject::from(*named, path));
  // Both change nothing: every schema is followed strictly.
  INGLE_RETURN_IF_ERROR(fields.get_string("name").status());
  INGLE_RETURN_IF_ERROR(fields.get_bool("strict").status());
  const std::string schema_path = fields.path_of("schema");
  const Json* const schema = fields.find("schema");
  if (schema == nullptr) {
    return missing_field(schema_path, "a JSON schema");
  }
  INGLE_RETURN_IF_ERROR(JsonObject::from(*schema, schema_path).status());
  return std::optional(
      AnswerFormat{{Kind::kJsonSchema, to_text(*schema)}, schema_path});
}

// A schema, or the text of one.
Result<std::string> schema_text(const Json& value, const std::string& path) {
  if (value.is_object()) {
    return to_text(value);
  }
  if (!value.is_string()) {
    return wrong_type(path, "an object or a string of JSON", value);
  }
  const auto schema = parse_json(value.get_ref<const std::string&>());
  if (!schema.is_ok() || !schema->is_object()) {
    return invalid_field(path, "expected a string that is a JSON object");
  }
  return to_text(*schema);
}

Result<std::string> choice_text(const Json& value, const std::string& path) {
  if (!value.is_array()) {
    return wrong_type(path, "an array of strings", value);
  }
  if (value.empty()) {
    return invalid_field(path, "expected at least one string, got none");
  }
  for (size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_string()) {
      return wrong_type(indexed_path(path, i), "a string", value[i]);
    }
    if (value[i].get_ref<const std::string&>().empty()) {
      return invalid_field(
          indexed_path(path, i), "expected a string that is not empty");
    }
  }
  return to_text(value);
}

Result<std::string> plain_text(const Json& value, const std::string& path) {
  if (!value.is_string()) {
    return wrong_type(path, "a string", value);
  }
  return value.get<std::string>();
}

struct GuidedField {
  const char* name;
  Kind kind;
  Result<std::string> (*read)(const Json& value, const std::string& path);
};

constexpr std::array<GuidedField, 5> kGuidedFields = {{
    {"guided_json", Kind::kJsonSchema, schema_text},
    {"guided_regex", Kind::kRegex, plain_text},
    {"guided_choice", Kind::kChoice, choice_text},
    {"guided_grammar", Kind::kLark, plain_text},
    {"grammar", Kind::kLark, plain_text},
}};

// Around the tags of a thought are line breaks, which may be missing.
std::string without_space(std::string_view text) {
  constexpr std::string_view kSpace = " \n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  const size_t end = text.find_last_not_of(kSpace);
  return std::string(text.substr(begin, end - begin + 1));
}

// How the answer's thought stands when it begins.
enum class ThoughtState { kNone, kPossible, kBegun };

ThoughtState thought_state(
    std::string_view prompt,
    bool may_think,
    const ThoughtMarkup& tags) {
  const size_t open = prompt.rfind(tags.open);
  const size_t close = prompt.rfind(tags.close);
  const bool has_close = close != std::string_view::npos;
  if (open != std::string_view::npos && (!has_close || open > close)) {
    return ThoughtState::kBegun;
  }
  const bool is_over =
      has_close && without_space(prompt.substr(close)) == tags.close;
  return may_think && !is_over ? ThoughtState::kPossible : ThoughtState::kNone;
}

// The format behind the thought.
GrammarSpec with_thought(
    const GrammarSpec& answer,
    std::string_view prompt,
    bool may_think,
    const OutputMarkup& markup) {
  if (!markup.thought) {
    return answer;
  }
  const ThoughtMarkup tags{
      without_space(markup.thought->open),
      without_space(markup.thought->close)};
  const ThoughtState state = thought_state(prompt, may_think, tags);
  if (state == ThoughtState::kNone) {
    return answer;
  }
  const LarkText until = lark_until(tags.close, markup, "thought");
  std::string lark = "start: ";
  if (state == ThoughtState::kPossible) {
    lark += "@answer | " + lark_literal(tags.open, markup) + " ";
  }
  lark += until.reference + " @answer\n" + until.rules;
  return {Kind::kLark, lark, {{"answer", answer.kind, answer.text}}};
}

} // namespace

Result<std::optional<AnswerFormat>> read_answer_format(const JsonObject& body) {
  INGLE_ASSIGN_OR_RETURN(auto format, read_response_format(body));
  for (const GuidedField& field : kGuidedFields) {
    const Json* const value = body.find(field.name);
    if (value == nullptr) {
      continue;
    }
    if (format) {
      return invalid_field(
          field.name,
          "expected one format of the answer, got " + format->path + " too");
    }
    INGLE_ASSIGN_OR_RETURN(std::string text, field.read(*value, field.name));
    format = AnswerFormat{{field.kind, std::move(text)}, field.name};
  }
  return format;
}

Result<std::shared_ptr<const Grammar>> compile_format(
    const AnswerFormat& format,
    std::string_view prompt,
    bool may_think,
    const ServedModel& model) {
  if (model.grammars == nullptr) {
    return no_tokenizer(format.path, model);
  }
  auto grammar = model.grammars->compile(
      with_thought(format.grammar, prompt, may_think, model.markup));
  if (grammar.status().code() == StatusCode::kInvalidRequest) {
    return invalid_field(format.path, grammar.status().message())
        .with_reason("invalid_grammar");
  }
  return grammar;
}

} // namespace ingle
