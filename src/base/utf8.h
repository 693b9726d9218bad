// Strict UTF-8: what JSON may contain.
#pragma once

#include <cstddef>
#include <string_view>

namespace ingle {

// Bytes of the character at the start of `text`; 0 where there is none or it
// is malformed (also: overlong, a surrogate, past U+10FFFF).
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

} // namespace ingle
