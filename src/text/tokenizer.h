// Text <-> token ids, as the model's tokenizer.json says.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "base/token.h"

struct IngleTokenizer; // text/rust/ingle_text.h

namespace ingle {

// Hugging Face's `tokenizers` behind a C boundary (text/rust).
//
// Threads: any; const after loading.
// Errors:  every function may give kCorruption: the file is broken in a way
//          that shows only now.
class Tokenizer {
 public:
  // `json` is the content of a tokenizer.json; `origin` its path, for
  // messages. Errors: kCorruption (not a tokenizer.json).
  static Result<std::shared_ptr<const Tokenizer>> from_json(
      std::string_view json,
      const std::string& origin);
  // Errors: those of from_json(), kNotFound, kIo.
  static Result<std::shared_ptr<const Tokenizer>> load(
      FileSystem& fs,
      const std::string& path);

  virtual ~Tokenizer() = default;

  // `add_special_tokens` runs the post-processor (bos and the like). Special
  // tokens that stand in `text` are recognised either way. Text that is not
  // UTF-8 is kInvalidRequest.
  virtual Result<std::vector<TokenId>> encode(
      std::string_view text,
      bool add_special_tokens) const = 0;
  // Unknown ids are kInvalidRequest.
  virtual Result<std::string> decode(
      std::span<const TokenId> ids,
      bool skip_special_tokens) const = 0;
  // The piece as the vocabulary spells it, or nothing.
  virtual std::optional<std::string> id_to_token(TokenId id) const = 0;
  // The bytes that the token stands for within a text: those of a part of a
  // character where that is all it holds, a special token's name, a space for
  // the mark that the vocabulary writes for one. Where the tokenizer does not
  // change a text, those of its tokens together are the text.
  // Errors: kInvalidRequest (unknown id, such as a padding row of the model).
  // Cost: linear in the piece.
  virtual Result<std::string> token_bytes(TokenId id) const = 0;
  virtual std::optional<TokenId> token_to_id(std::string_view token) const = 0;
  // Ids are below this, added tokens included.
  virtual TokenId vocab_size() const = 0;
  // The crate's, for the rest of text/; null: this one is not of the crate.
  virtual const IngleTokenizer* handle() const {
    return nullptr;
  }
};

} // namespace ingle
