// From the body of a request to a generation and the writer of its answer.
#pragma once

#include <memory>
#include <string_view>

#include "api/answer_writer.h"
#include "base/status.h"
#include "engine/generator.h"
#include "engine/served_model.h"

namespace ingle {

struct Answer {
  GenerationRequest generation;
  std::unique_ptr<AnswerWriter> writer;
  bool stream = false;
};

// Errors: kInvalidRequest, naming the place.
Result<Answer> prepare_chat(
    std::string_view body,
    const ServedModel& model,
    AnswerIdentity identity);
Result<Answer> prepare_completion(
    std::string_view body,
    const ServedModel& model,
    AnswerIdentity identity);

} // namespace ingle
