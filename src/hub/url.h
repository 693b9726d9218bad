// The parts of addresses that decide who gets to see what.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ingle {

// "https://host:443", as whoever connects reads it: scheme, host in small
// letters, port. Nothing: it is no address of http or https.
std::optional<std::string> origin_of(const std::string& url);

// A word in an address's path: all but letters, digits and "-_.~" escaped.
std::string escape_for_url(std::string_view text);

// Without what follows the path, which may hold a signature: for messages.
std::string shown_url(std::string_view url);

} // namespace ingle
