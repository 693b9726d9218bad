// The text side of an answer: its tokens -> what the client is told.
#pragma once

#include <memory>
#include <optional>

#include "engine/generator.h"
#include "engine/served_model.h"
#include "text/output_router.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace ingle {

// Decodes, takes thoughts and tool calls out where the request says so, and
// looks for stop strings in what is left, the content.
//
// Threads: one.
class AnswerText {
 public:
  AnswerText(const GenerationRequest& request, const ServedModel& model);

  // Adds to `delta` what a token came to. Before min_tokens stop strings are
  // not looked for. Errors: kCorruption (the tokenizer).
  Status push(TokenId token, bool may_stop, GenerationDelta& delta);
  // What was held back, when no more tokens come.
  GenerationDelta flush();

  // True iff the answer ends here: with a stop string, or with its one call.
  bool is_over() const;
  bool has_calls() const;
  // Tokens within thoughts, and those that open and close them.
  int reasoning_tokens() const {
    return reasoning_tokens_;
  }

 private:
  void add(RoutedText text, bool may_stop, GenerationDelta& delta);

  const std::shared_ptr<const Tokenizer> tokenizer_; // null: tokens alone
  std::optional<StreamDecoder> decoder_;
  std::unique_ptr<OutputRouter> router_; // null: all is content
  StopMatcher stop_;
  int reasoning_tokens_ = 0;
};

} // namespace ingle
