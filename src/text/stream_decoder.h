// Token ids -> text as they come, each character once and whole.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace ingle {

// Concatenating what push() returns gives Tokenizer::decode() of all ids
// pushed (special tokens skipped), up to an incomplete character at the end.
//
// Cost:    linear in the number of tokens: it decodes a bounded window that
//          starts at the last place where the text was settled.
// Threads: one.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer);

  // What `id` added; empty while a character is incomplete. Never contains
  // U+FFFD for a character that later tokens complete.
  // Errors: kInvalidRequest (unknown id).
  Result<std::string> push(TokenId id);

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenId> window_;
  size_t emitted_ = 0; // bytes of the window's text given out already
};

} // namespace ingle
