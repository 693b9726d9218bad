// Pieces of a Lark grammar that are about texts that a model writes.
#pragma once

#include <string>
#include <string_view>

#include "text/output_markup.h"

namespace ingle {

// What stands for exactly this text: literals, and the special tokens that the
// markup has among them. Nothing, for an empty text.
std::string lark_literal(std::string_view text, const OutputMarkup& markup);

// A part of a grammar: what to write where it is meant, and the rules for it.
struct LarkText {
  std::string reference;
  std::string rules; // lines
};

// Any text up to the first `end`, and `end`. `rule` names a rule for it, in
// small letters.
LarkText lark_until(
    std::string_view end,
    const OutputMarkup& markup,
    const std::string& rule);

} // namespace ingle
