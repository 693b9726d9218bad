// POST /tokenize, /detokenize and /apply-template: what a client sees of the
// model's text side. Shapes as llama.cpp's server has them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/served_model.h"

namespace ingle {

// {"content": text, "add_special": false, "with_pieces": false} ->
// {"tokens": [ids]}, or [{"id", "piece"}]: a piece is its text, or an array of
// bytes where these are not UTF-8.
Result<std::string> tokenize(std::string_view body, const ServedModel& model);

// {"tokens": [ids]} -> {"content": text}, special tokens included.
Result<std::string> detokenize(std::string_view body, const ServedModel& model);

// A chat request -> {"prompt": text}, as the model would be given it.
Result<std::string> apply_template(
    std::string_view body,
    const ServedModel& model);

// Errors of all three: kInvalidRequest, naming the place.

} // namespace ingle
