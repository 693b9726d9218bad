// What the answers of the two dialects differ in: the shape of a choice.
//
// Private to api/: includes the JSON library.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer_writer.h"
#include "api/json_reader.h"
#include "api/logprobs.h"

namespace ingle {

// All of a choice.
struct WholeChoice {
  std::string text;
  std::string reasoning;
  std::vector<ToolCallPart> tool_calls; // whole, in their order
  Json logprobs; // may be null
  std::string_view finish_reason;
};

// Threads: any; const.
class ChoiceShape {
 public:
  virtual ~ChoiceShape() = default;

  virtual std::string_view id_prefix() const = 0;
  // The value of "object" in a whole answer, and in a chunk of a stream.
  virtual std::string_view whole_object() const = 0;
  virtual std::string_view chunk_object() const = 0;

  // What a stream begins a choice with; null: nothing.
  virtual Json opening(size_t choice) const = 0;
  // A piece of a stream, and of no text its last. `logprobs` and
  // `finish_reason` may be null.
  virtual Json piece(
      size_t choice,
      std::string_view text,
      Json logprobs,
      Json finish_reason) const = 0;
  // As piece(), of what only chats have.
  virtual Json reasoning_piece(size_t choice, std::string_view text) const = 0;
  virtual Json tool_calls_piece(
      size_t choice,
      std::span<const ToolCallPart> parts) const = 0;
  virtual Json whole(size_t index, const WholeChoice& choice) const = 0;

  // Adds tokens to a block, or begins one; see LogprobsWriter for `echo` and
  // `position`.
  virtual void add_logprobs(
      Json& block,
      std::span<const GeneratedToken> tokens,
      std::string_view echo,
      TextPosition& position) const = 0;
};

// Writes a stream, or the one body of an answer that is not streamed.
std::unique_ptr<AnswerWriter> make_writer(
    AnswerIdentity identity,
    AnswerOptions options,
    std::unique_ptr<const ChoiceShape> shape);

} // namespace ingle
