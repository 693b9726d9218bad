// Turns one generation into the bytes that its client reads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/generator.h"

namespace ingle {

// What an answer says about itself.
struct AnswerIdentity {
  std::string uuid; // the id after its prefix ("chatcmpl-<uuid>")
  std::string model;
  int64_t created = 0; // seconds since the epoch
};

// One per answer. A stream is begin(), any number of delta(), and end() or
// failure(); each gives whole server-sent events, or nothing where there is
// nothing to tell.
//
// Threads: one.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual std::string begin() = 0;
  virtual std::string delta(const GenerationDelta& delta) = 0;
  // Requires: end.status is ok. Ends in "data: [DONE]".
  virtual std::string end(const GenerationEnd& end) = 0;
  // The body of an answer that is not streamed. Requires: end.status is ok.
  virtual std::string whole(
      const std::string& text,
      const GenerationEnd& end) = 0;
};

// The last event of a stream that failed; no [DONE] follows it. `status` is
// what the client may know.
std::string failure_event(const Status& status);

std::unique_ptr<AnswerWriter> make_chat_writer(
    AnswerIdentity identity,
    bool include_usage);
std::unique_ptr<AnswerWriter> make_completion_writer(
    AnswerIdentity identity,
    bool include_usage);

} // namespace ingle
