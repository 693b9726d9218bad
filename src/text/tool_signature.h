// What a tool takes, as far as a call of it has to be read by it.
#pragma once

#include <map>
#include <string>

namespace ingle {

// The types that a parameter may have, as bits.
using JsonTypes = unsigned;
inline constexpr JsonTypes kJsonString = 1;
inline constexpr JsonTypes kJsonNumber = 2;
inline constexpr JsonTypes kJsonBool = 4;
inline constexpr JsonTypes kJsonNull = 8;
inline constexpr JsonTypes kJsonObject = 16;
inline constexpr JsonTypes kJsonArray = 32;
inline constexpr JsonTypes kJsonAny = 63; // also: the schema doesn't say

// By the parameter's name; one that is not there may be anything.
using ToolParameters = std::map<std::string, JsonTypes, std::less<>>;
// By the tool's name.
using ToolSignatures = std::map<std::string, ToolParameters, std::less<>>;

} // namespace ingle
