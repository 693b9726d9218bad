#include "text/lark_text.h"

#include <utility>

namespace ingle {
namespace {

// As JSON writes a string, which Lark's are.
std::string quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += {'\\', c};
    } else if (byte < 0x20) {
      literal += "\\x";
      literal += kDigits[byte / 16];
      literal += kDigits[byte % 16];
    } else {
      literal += c;
    }
  }
  return literal + "\"";
}

std::string special(TokenId id) {
  return "<[" + std::to_string(id) + "]>";
}

// The first special token in the text, the longest where several begin.
std::pair<size_t, std::string_view> find_special(
    std::string_view text,
    const OutputMarkup& markup) {
  std::pair<size_t, std::string_view> first{std::string_view::npos, {}};
  for (const auto& [name, id] : markup.special_tokens) {
    const size_t at = text.find(name);
    if (at < first.first ||
        (at == first.first && name.size() > first.second.size())) {
      first = {at, name};
    }
  }
  return first;
}

} // namespace

std::string lark_literal(std::string_view text, const OutputMarkup& markup) {
  std::string lark;
  const auto add = [&](const std::string& piece) {
    lark += lark.empty() ? piece : " " + piece;
  };
  while (!text.empty()) {
    const auto [at, name] = find_special(text, markup);
    if (const auto plain = text.substr(0, at); !plain.empty()) {
      add(quoted(plain));
    }
    if (at == std::string_view::npos) {
      break;
    }
    add(special(markup.special_tokens.find(name)->second));
    text.remove_prefix(at + name.size());
  }
  return lark;
}

LarkText lark_until(
    std::string_view end,
    const OutputMarkup& markup,
    const std::string& rule) {
  const auto [at, name] = find_special(end, markup);
  if (at == 0) {
    return {"/(?s:.*)/ " + lark_literal(end, markup), ""};
  }
  return {rule, rule + "[suffix=" + quoted(end) + "]: /(?s:.*)/\n"};
}

} // namespace ingle
