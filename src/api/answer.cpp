#include "api/answer.h"

#include <iterator>
#include <utility>
#include <vector>

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "api/prompt.h"

namespace ingle {
namespace {

AnswerOptions answer_options(const RequestOptions& options) {
  AnswerOptions answer;
  answer.stream = options.stream;
  answer.include_usage = options.include_usage;
  answer.return_progress = options.return_progress;
  answer.top_logprobs = options.top_logprobs;
  answer.choices_per_prompt = static_cast<size_t>(options.n);
  return answer;
}

// Embeddings are padded to round sizes: such ids have no text.
Result<std::string> text_of(
    const CompletionPrompt& prompt,
    const ServedModel& model) {
  if (const auto* const text = std::get_if<std::string>(&prompt.content)) {
    return *text;
  }
  if (model.tokenizer == nullptr) {
    return std::string();
  }
  std::vector<TokenId> ids = std::get<std::vector<TokenId>>(prompt.content);
  std::erase_if(ids, [&](TokenId id) {
    return !model.tokenizer->id_to_token(id).has_value();
  });
  return model.tokenizer->decode(ids, /*skip_special_tokens=*/false);
}

} // namespace

Result<Answer> prepare_chat(
    std::string_view body,
    const ServedModel& model,
    AnswerIdentity identity) {
  INGLE_ASSIGN_OR_RETURN(
      const ChatRequest request, parse_chat_request(body, model.defaults));
  INGLE_ASSIGN_OR_RETURN(
      GenerationRequest generation, make_generation(request, model));
  Answer answer;
  answer.generations = repeat(generation, request.options.n);
  answer.stream = request.options.stream;
  answer.writer = make_chat_writer(
      std::move(identity), answer_options(request.options), model.tokenizer);
  return answer;
}

Result<Answer> prepare_completion(
    std::string_view body,
    const ServedModel& model,
    AnswerIdentity identity) {
  INGLE_ASSIGN_OR_RETURN(
      const CompletionRequest request,
      parse_completion_request(body, model.defaults));
  AnswerOptions options = answer_options(request.options);
  options.prompts = request.prompts.size();
  Answer answer;
  for (const CompletionPrompt& prompt : request.prompts) {
    INGLE_ASSIGN_OR_RETURN(
        GenerationRequest generation, make_generation(request, prompt, model));
    if (request.echo) {
      INGLE_ASSIGN_OR_RETURN(std::string text, text_of(prompt, model));
      options.echoes.push_back({std::move(text), generation.prompt.front()});
    }
    std::vector<GenerationRequest> repeated =
        repeat(generation, request.options.n);
    answer.generations.insert(
        answer.generations.end(),
        std::make_move_iterator(repeated.begin()),
        std::make_move_iterator(repeated.end()));
  }
  answer.stream = request.options.stream;
  answer.writer = make_completion_writer(
      std::move(identity), std::move(options), model.tokenizer);
  return answer;
}

} // namespace ingle
