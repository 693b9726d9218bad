// What an answer has to look like: OpenAI's response_format, and the fields by
// which vLLM and its clients ask for a regular expression, a choice or a
// grammar.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/served_model.h"
#include "text/grammar.h"

namespace ingle {

class JsonObject;

struct AnswerFormat {
  GrammarSpec grammar;
  std::string path; // where it stands in the body
};

// Reads response_format, guided_json, guided_regex, guided_choice,
// guided_grammar and grammar, of which one may be there; nothing: the answer is
// any text.
// Errors: kInvalidRequest, naming the field.
Result<std::optional<AnswerFormat>> read_answer_format(const JsonObject& body);

// The grammar behind a thought that the prompt has begun, or that the model may
// begin (`may_think`).
GrammarSpec behind_thought(
    const GrammarSpec& answer,
    std::string_view prompt,
    bool may_think,
    const OutputMarkup& markup);

// Compiles it for the model. `prompt` is the text that the answer follows: a
// thought that it has begun, or that the model may begin (`may_think`), stands
// before what the format says.
// Errors: kInvalidRequest, naming the field, with llguidance's words and, for a
//         schema, the path in it; for a model without a tokenizer, reason
//         "no_tokenizer".
Result<std::shared_ptr<const Grammar>> compile_format(
    const AnswerFormat& format,
    std::string_view prompt,
    bool may_think,
    const ServedModel& model);

} // namespace ingle
