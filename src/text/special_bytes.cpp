#include "text/special_bytes.h"

namespace ingle {

SpecialBytes::SpecialBytes(const OutputMarkup& markup) {
  unsigned next = kFirst;
  for (const auto& [text, id] : markup.special_tokens) {
    if (next <= 0xFF) {
      specials_.emplace(id, Special{text, static_cast<char>(next++)});
    }
  }
}

std::string SpecialBytes::marker(std::string_view text) const {
  for (const auto& [id, special] : specials_) {
    if (special.text == text) {
      return std::string(1, special.byte);
    }
  }
  return std::string(text);
}

std::string SpecialBytes::encode(TokenId id, std::string_view text) const {
  const auto special = specials_.find(id);
  if (special == specials_.end()) {
    return std::string(text);
  }
  const std::string& spelling = special->second.text;
  if (text.ends_with(spelling)) {
    text.remove_suffix(spelling.size());
  }
  return std::string(text) + special->second.byte;
}

std::string SpecialBytes::spelled(std::string_view encoded) const {
  std::string text;
  for (const char c : encoded) {
    if (!is_special(c)) {
      text += c;
      continue;
    }
    for (const auto& [id, special] : specials_) {
      text += special.byte == c ? special.text : std::string();
    }
  }
  return text;
}

} // namespace ingle
