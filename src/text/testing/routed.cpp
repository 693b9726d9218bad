#include "text/testing/routed.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

namespace ingle {
namespace {

constexpr TokenId kText = 0;

void add(Routed& routed, std::map<size_t, std::string>& open, RoutedText part) {
  routed.content += part.content;
  routed.reasoning += part.reasoning;
  for (const ToolCallPart& call : part.calls) {
    if (open.contains(call.index) != call.name.empty()) {
      routed.broken = "a call without a name, or with two";
    }
    if (!call.name.empty()) {
      open[call.index] = call.name + "(";
    }
    open[call.index] += call.arguments;
    if (call.end != ToolCallPart::End::kNone) {
      auto& list =
          call.end == ToolCallPart::End::kWhole ? routed.calls : routed.voids;
      list.push_back(open[call.index] + ")");
    }
  }
}

bool is_inside_character(std::string_view text, size_t at) {
  return at < text.size() &&
      (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

} // namespace

std::vector<TextToken> cut_text(
    std::string_view text,
    const OutputMarkup& markup,
    const std::vector<size_t>& sizes) {
  std::vector<TextToken> tokens;
  size_t turn = 0;
  while (!text.empty()) {
    size_t end = text.size();
    std::string_view special;
    TokenId id = kText;
    for (const auto& [marker, of_marker] : markup.special_tokens) {
      const size_t at = text.find(marker);
      if (at < end) {
        end = at;
        special = marker;
        id = of_marker;
      }
    }
    std::string_view plain = text.substr(0, end);
    while (!plain.empty()) {
      size_t size = std::min(plain.size(), sizes[turn++ % sizes.size()]);
      while (is_inside_character(plain, size)) {
        ++size;
      }
      tokens.push_back({kText, std::string(plain.substr(0, size))});
      plain.remove_prefix(size);
    }
    if (!special.empty()) {
      tokens.push_back({id, std::string(special)});
    }
    text.remove_prefix(end + special.size());
  }
  return tokens;
}

Routed route_tokens(
    const std::vector<TextToken>& tokens,
    const OutputMarkup& markup,
    const OutputRouting& routing) {
  const auto router = make_output_router(markup, routing);
  Routed routed;
  std::map<size_t, std::string> open;
  for (const TextToken& token : tokens) {
    add(routed, open, router->push(token.id, token.text));
  }
  add(routed, open, router->flush());
  if (router->calls() != routed.calls.size()) {
    routed.broken = "the calls are not those that it counts";
  }
  return routed;
}

Routed route(
    std::string_view text,
    const OutputMarkup& markup,
    const OutputRouting& routing) {
  return route_tokens(
      cut_text(text, markup, {std::max<size_t>(text.size(), 1)}),
      markup,
      routing);
}

std::string find_differing_cut(
    std::string_view text,
    const OutputMarkup& markup,
    const OutputRouting& routing) {
  const Routed whole = route(text, markup, routing);
  std::vector<std::vector<size_t>> cuts;
  for (size_t size = 1; size <= 9; ++size) {
    cuts.push_back({size});
  }
  for (size_t first = 1; first < text.size(); ++first) {
    cuts.push_back({first, text.size()});
  }
  std::minstd_rand random(1);
  for (int i = 0; i < 20; ++i) {
    std::vector<size_t> sizes;
    for (int j = 0; j < 16; ++j) {
      sizes.push_back(1 + random() % 7);
    }
    cuts.push_back(std::move(sizes));
  }
  for (const std::vector<size_t>& sizes : cuts) {
    const auto tokens = cut_text(text, markup, sizes);
    if (route_tokens(tokens, markup, routing) != whole) {
      std::string cut;
      for (const TextToken& token : tokens) {
        cut += token.text + "|";
      }
      return cut;
    }
  }
  return whole.broken;
}

} // namespace ingle
