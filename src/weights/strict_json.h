// JSON from files that nobody vouches for.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace ingle {

// Levels of objects and arrays that are read; no format of ours needs ten.
inline constexpr size_t kMaxJsonDepth = 64;

// Refuses what is lenient elsewhere: a key that stands twice in one object,
// nesting deeper than kMaxJsonDepth, text that is not UTF-8. `origin` names the
// file. Errors: kCorruption.
Result<nlohmann::json> parse_strict_json(
    std::string_view text,
    const std::string& origin);

} // namespace ingle
