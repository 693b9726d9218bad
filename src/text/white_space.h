// White space as JSON and the markup of models have it. Private to text/.
#pragma once

#include <string_view>

namespace ingle {

inline bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

inline std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  return without_trailing_space(text);
}

} // namespace ingle
