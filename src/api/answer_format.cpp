#include "api/answer_format.h"

#include <array>
#include <utility>

#include "api/error_body.h"
#include "api/json_reader.h"
#include "api/prompt.h"
#include "text/lark_text.h"
#include "text/output_router.h"

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

// gpt-oss answers in messages: a thought is one, and the answer another.
std::string between_messages(const OutputMarkup& markup) {
  return markup.family == OutputFamily::kHarmony
      ? lark_literal("<|start|>assistant", markup)
      : std::string();
}

GrammarSpec in_final_message(GrammarSpec answer, const OutputMarkup& markup) {
  if (markup.family != OutputFamily::kHarmony) {
    return answer;
  }
  const std::string head = lark_literal("<|channel|>final<|message|>", markup);
  return {
      Kind::kLark,
      "start: " + head + " @content\n",
      {{"content", answer.kind, std::move(answer.text)}}};
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

GrammarSpec behind_thought(
    const GrammarSpec& answer,
    std::string_view prompt,
    bool may_think,
    const OutputMarkup& markup) {
  if (!markup.thought) {
    return answer;
  }
  const std::string open = without_space(markup.thought->open);
  const std::string close = without_space(markup.thought->close);
  const bool has_begun = ends_in_open_thought(prompt, markup);
  const size_t last = prompt.rfind(close);
  const bool is_over = last != std::string_view::npos &&
      without_space(prompt.substr(last)) == close;
  if (!has_begun && (is_over || !may_think)) {
    return answer;
  }
  const LarkText until = lark_until(close, markup, "thought");
  std::string lark = "start: ";
  if (!has_begun) {
    lark += "@answer | " + lark_literal(open, markup) + " ";
  }
  lark += until.reference + " " + between_messages(markup) + " @answer\n" +
      until.rules;
  GrammarSpec spec{Kind::kLark, lark, answer.parts};
  spec.parts.push_back({"answer", answer.kind, answer.text});
  return spec;
}

Result<std::shared_ptr<const Grammar>> compile_format(
    const AnswerFormat& format,
    std::string_view prompt,
    bool may_think,
    const ServedModel& model) {
  if (model.grammars == nullptr) {
    return no_tokenizer(format.path, model);
  }
  auto grammar = model.grammars->compile(behind_thought(
      in_final_message(format.grammar, model.markup),
      prompt,
      may_think,
      model.markup));
  if (grammar.status().code() == StatusCode::kInvalidRequest) {
    return invalid_field(format.path, grammar.status().message())
        .with_reason("invalid_grammar");
  }
  return grammar;
}

} // namespace ingle
