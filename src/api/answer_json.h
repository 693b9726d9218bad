// What the answers of chat and text completions have in common.
//
// Private to api/: includes the JSON library.
#pragma once

#include <string>
#include <string_view>

#include "api/answer_writer.h"
#include "api/json_reader.h"

namespace ingle {

inline constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";

// "data: <value>\n\n".
std::string event_of(const Json& value);

// Writes a stream's chunks, or the one body of an answer that is not streamed;
// only the choice differs by dialect.
//
// With `include_usage` usage comes as OpenAI sends it: a last chunk of its own
// without choices, and null in all others. Without, it stands on the chunk
// that carries the finish reason.
class ChunkWriter {
 public:
  ChunkWriter(
      AnswerIdentity identity,
      std::string_view id_prefix,
      std::string_view object,
      bool include_usage);

  std::string chunk(Json choice) const;
  // The finish chunk, the usage chunk if asked for, and [DONE].
  std::string last(Json choice, const GenerationEnd& end) const;
  // A whole answer; `object` names its kind, as the constructor's does that of
  // a chunk.
  std::string
  whole(std::string_view object, Json choice, const GenerationEnd& end) const;

 private:
  // The fields that stand first in every chunk and body, `choices` included.
  Json head(std::string_view object, Json choices) const;

  AnswerIdentity identity_;
  std::string_view id_prefix_;
  std::string_view object_;
  bool include_usage_;
};

} // namespace ingle
