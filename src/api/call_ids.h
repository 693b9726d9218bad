// The ids of tool calls.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ingle {

// Eight hexadecimal digits, the same for the same text.
std::string hash_text(std::string_view text);

// "call_" and eight hexadecimal digits, which differ for the calls of an
// answer.
std::string call_id(std::string_view answer_uuid, size_t choice, size_t call);

} // namespace ingle
