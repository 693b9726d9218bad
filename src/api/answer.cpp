#include "api/answer.h"

#include <utility>

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "api/prompt.h"

namespace ingle {

Result<Answer> prepare_chat(
    std::string_view body,
    const ServedModel& model,
    AnswerIdentity identity) {
  INGLE_ASSIGN_OR_RETURN(const ChatRequest request, parse_chat_request(body));
  Answer answer;
  INGLE_ASSIGN_OR_RETURN(answer.generation, make_generation(request, model));
  answer.stream = request.options.stream;
  answer.writer =
      make_chat_writer(std::move(identity), request.options.include_usage);
  return answer;
}

Result<Answer> prepare_completion(
    std::string_view body,
    const ServedModel& model,
    AnswerIdentity identity) {
  INGLE_ASSIGN_OR_RETURN(
      const CompletionRequest request, parse_completion_request(body));
  Answer answer;
  INGLE_ASSIGN_OR_RETURN(answer.generation, make_generation(request, model));
  answer.stream = request.options.stream;
  answer.writer = make_completion_writer(
      std::move(identity), request.options.include_usage);
  return answer;
}

} // namespace ingle
