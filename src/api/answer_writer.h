// Turns the generations of one answer into the bytes that its client reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/generator.h"
#include "text/tokenizer.h"

namespace ingle {

// What an answer says about itself.
struct AnswerIdentity {
  std::string uuid; // the id after its prefix ("chatcmpl-<uuid>")
  std::string model;
  int64_t created = 0; // seconds since the epoch
};

// What an answer repeats of its prompt.
struct Echo {
  std::string text;
  TokenId first_token = 0;
};

// How an answer is written.
struct AnswerOptions {
  bool stream = false;
  bool include_usage = false;
  bool return_progress = false;
  std::optional<int> top_logprobs; // nothing: no log-probabilities
  size_t prompts = 1;
  size_t choices_per_prompt = 1;
  std::vector<Echo> echoes; // by prompt; empty: none

  size_t choices() const {
    return prompts * choices_per_prompt;
  }
};

// One per answer. Each choice goes through any number of prefill(), then
// delta(), and one end(); choices come in any order, mixed. In a stream every
// call gives whole server-sent events, or nothing where there is nothing to
// tell, and the last choice's end() finishes with "data: [DONE]". An answer
// that is not streamed is given by the last end() as a whole.
//
// Threads: one.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual std::string begin() = 0;
  virtual std::string prefill(size_t choice, const PrefillStep& step) = 0;
  virtual std::string delta(size_t choice, const GenerationDelta& delta) = 0;
  // Requires: end.status is ok.
  virtual std::string end(size_t choice, const GenerationEnd& end) = 0;
};

// The last event of a stream that failed; no [DONE] follows it. `status` is
// what the client may know.
std::string failure_event(const Status& status);

// `tokenizer` may be null where no log-probabilities are asked for.
std::unique_ptr<AnswerWriter> make_chat_writer(
    AnswerIdentity identity,
    AnswerOptions options,
    std::shared_ptr<const Tokenizer> tokenizer);
std::unique_ptr<AnswerWriter> make_completion_writer(
    AnswerIdentity identity,
    AnswerOptions options,
    std::shared_ptr<const Tokenizer> tokenizer);

} // namespace ingle
