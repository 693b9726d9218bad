#include "engine/answer_text.h"

#include <utility>
#include <vector>

namespace ingle {

AnswerText::AnswerText(
    const GenerationRequest& request,
    const ServedModel& model)
    : tokenizer_(model.tokenizer), stop_(request.stop) {
  std::vector<TokenId> shown;
  if (request.routing != nullptr) {
    router_ = make_output_router(model.markup, *request.routing);
    for (const auto& [text, id] : model.markup.special_tokens) {
      shown.push_back(id);
    }
  }
  if (tokenizer_) {
    decoder_.emplace(tokenizer_, std::move(shown));
  }
}

Status AnswerText::push(TokenId token, bool may_stop, GenerationDelta& delta) {
  // Embeddings are padded to round sizes: such ids have no text.
  if (!decoder_ || !tokenizer_->id_to_token(token)) {
    return Status::ok();
  }
  INGLE_ASSIGN_OR_RETURN(std::string text, decoder_->push(token));
  if (router_ == nullptr) {
    add({std::move(text), {}, {}}, may_stop, delta);
    return Status::ok();
  }
  const bool was_thinking = router_->is_thinking();
  add(router_->push(token, text), may_stop, delta);
  reasoning_tokens_ += was_thinking || router_->is_thinking() ? 1 : 0;
  return Status::ok();
}

GenerationDelta AnswerText::flush() {
  GenerationDelta delta;
  if (router_ != nullptr && !stop_.stopped()) {
    add(router_->flush(), /*may_stop=*/true, delta);
  }
  delta.text += stop_.flush();
  return delta;
}

void AnswerText::add(RoutedText text, bool may_stop, GenerationDelta& delta) {
  delta.text += may_stop ? stop_.push(text.content) : text.content;
  delta.reasoning += text.reasoning;
  delta.tool_calls = std::move(text.calls);
}

bool AnswerText::is_over() const {
  return stop_.stopped() || (router_ != nullptr && router_->is_done());
}

bool AnswerText::has_calls() const {
  return router_ != nullptr && router_->calls() > 0;
}

} // namespace ingle
