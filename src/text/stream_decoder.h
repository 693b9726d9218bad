// Token ids -> text as they come, each character once and whole.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace ingle {

// Concatenating what push() returns gives Tokenizer::decode() of all ids
// pushed (special tokens skipped, but for those that are shown), up to an
// incomplete character at the end. The text of one that is shown is the end of
// what its push() returns.
//
// One exception: where a vocabulary falls back to bytes, decode() turns a run
// of byte tokens that is not UTF-8 as a whole into one U+FFFD per byte, those
// of its good characters included. What was shown by then stays, and only the
// rest of the run comes as U+FFFD.
//
// Cost:    linear in the number of tokens: each push decodes a bounded window
//          that starts where the text was settled.
// Threads: one.
class StreamDecoder {
 public:
  // `shown`: special tokens that are text here.
  explicit StreamDecoder(
      std::shared_ptr<const Tokenizer> tokenizer,
      std::vector<TokenId> shown = {});

  // What `id` added; empty while a character is incomplete. Never contains
  // U+FFFD for a character that later tokens complete.
  // Errors: kInvalidRequest (unknown id; it is as if it had not been pushed).
  Result<std::string> push(TokenId id);

 private:
  Result<std::string> decode(std::span<const TokenId> ids) const;
  Result<bool> is_skipped(TokenId id) const;
  Status advance();
  Result<std::string> shrink();

  std::shared_ptr<const Tokenizer> tokenizer_;
  const std::vector<TokenId> shown_specials_;
  // The last tokens: some whose text was shown, because decoders treat the
  // beginning of a text differently, then those whose text was not yet.
  std::vector<TokenId> window_;
  size_t shown_tokens_ = 0; // the former, at the last time all was shown
  std::string decoded_; // the window's text
  std::string shown_; // its beginning that was given out
};

} // namespace ingle
