// The log-probability blocks of both dialects.
//
// Private to api/: includes the JSON library.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/json_reader.h"
#include "engine/generator.h"
#include "text/tokenizer.h"

namespace ingle {

// A token that nothing predicts, as the first of a prompt: its log-probability
// is no number, which JSON writes as null.
GeneratedToken unpredicted(TokenId id);

// How far the tokens of an answer have got in its text.
struct TextPosition {
  size_t bytes = 0;
  size_t characters = 0;

  void advance(std::string_view text);
};

// The blocks are supersets of OpenAI's and mlx-lm's: a token has its id, its
// text (what is not UTF-8 replaced) and its bytes. What the model can't produce
// has -9999.
class LogprobsWriter {
 public:
  // `tokenizer` may be null: tokens then have no text.
  explicit LogprobsWriter(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  // {"content": [{id, token, bytes, logprob, top_logprobs}], "refusal": null}
  void add_chat(Json& block, std::span<const GeneratedToken> tokens) const;

  // OpenAI's {tokens, token_logprobs, top_logprobs, text_offset}, and chat's
  // content. A token's alternatives have itself among them, by text: one that
  // is not UTF-8 is spelled "bytes:\\xe2\\x82".
  //
  // `position` is where the first token begins, and moves behind the last.
  // Tokens of `echo`, the text that the answer repeats, take up what room they
  // have in it: none where the tokenizer put them in front.
  void add_completion(
      Json& block,
      std::span<const GeneratedToken> tokens,
      std::string_view echo,
      TextPosition& position) const;

 private:
  std::string bytes_of(TokenId id) const;
  Json entry(TokenId id, float logprob) const;
  void add_content(Json& block, std::span<const GeneratedToken> tokens) const;
  Json alternatives(const GeneratedToken& token) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
};

} // namespace ingle
