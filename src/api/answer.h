// From the body of a request to generations and the writer of their answer.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "api/answer_writer.h"
#include "base/status.h"
#include "engine/generator.h"
#include "engine/served_model.h"

namespace ingle {

struct Answer {
  std::vector<GenerationRequest> generations; // one per choice, in their order
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
