// Runs a router over a text in many cuts. For tests only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/output_router.h"

namespace ingle {

// What the pieces of an answer came to.
struct Routed {
  std::string content;
  std::string reasoning;
  std::vector<std::string> calls; // "name(arguments)", whole ones
  std::vector<std::string> voids; // as above, those that broke off
  std::string broken; // what no router may do; empty: it did none of it

  bool operator==(const Routed&) const = default;
};

// A token and its text.
struct TextToken {
  TokenId id = 0;
  std::string text;
};

// The special tokens of a markup are one token each where the text has them;
// what stands between them is cut at the places where `cuts` says so, in turn.
std::vector<TextToken> cut_text(
    std::string_view text,
    const OutputMarkup& markup,
    const std::vector<size_t>& sizes);

Routed route_tokens(
    const std::vector<TextToken>& tokens,
    const OutputMarkup& markup,
    const OutputRouting& routing);

// In one piece.
Routed route(
    std::string_view text,
    const OutputMarkup& markup,
    const OutputRouting& routing);

// Whether all cuts, of which some are random, come to the same as one piece:
// the first that differs, or nothing.
std::string find_differing_cut(
    std::string_view text,
    const OutputMarkup& markup,
    const OutputRouting& routing);

} // namespace ingle
