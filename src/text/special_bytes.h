// Special tokens within text, told from text that spells them.
//
// Private to text/.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/token.h"
#include "text/output_markup.h"

namespace ingle {

// Each special token is one of the bytes that no UTF-8 has, so that what reads
// markup sees characters only.
//
// Threads: one; const after making.
class SpecialBytes {
 public:
  explicit SpecialBytes(const OutputMarkup& markup);

  static bool is_special(char c) {
    return static_cast<unsigned char>(c) >= kFirst;
  }

  // A marker as it stands in encoded text.
  std::string marker(std::string_view text) const;
  // What a token added to a text. The byte stands for the token at the end of
  // it.
  std::string encode(TokenId id, std::string_view text) const;
  // The text as the tokens spell it.
  std::string spelled(std::string_view encoded) const;

 private:
  static constexpr unsigned char kFirst = 0xF5;

  struct Special {
    std::string text;
    char byte = 0;
  };
  std::map<TokenId, Special> specials_; // at most 11
};

} // namespace ingle
