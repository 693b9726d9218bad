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

Json usage_of(const GenerationStats& stats);

// The fields that stand first in every chunk and body, `choices` included.
Json answer_head(
    const AnswerIdentity& identity,
    std::string_view id_prefix,
    std::string_view object,
    Json choices);

// Writes a stream's chunks, of which only the choice differs by dialect.
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

 private:
  Json head(Json choices) const;

  AnswerIdentity identity_;
  std::string_view id_prefix_;
  std::string_view object_;
  bool include_usage_;
};

} // namespace ingle
