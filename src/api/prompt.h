// From a parsed request to what the engine generates from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "base/status.h"
#include "engine/generator.h"
#include "engine/served_model.h"

namespace ingle {

// No piece of a vocabulary worth counting is longer: text of more bytes per
// token of the context doesn't fit, and is refused without being encoded.
inline constexpr size_t kMaxBytesPerToken = 256;

// "`path`: the model has no tokenizer.json ..."; reason "no_tokenizer".
Status no_tokenizer(const std::string& path, const ServedModel& model);

// Errors: kInvalidRequest (an id that is not below `vocab_size`; `path` is
//         their array's).
Status check_token_ids(
    const std::vector<TokenId>& ids,
    int vocab_size,
    const std::string& path);

// The model's tokens of a text. `path` names its place in messages.
// Errors: kInvalidRequest (a model without a tokenizer; text that can't fit the
//         context, reason "context_length_exceeded").
Result<std::vector<TokenId>> encode_text(
    std::string_view text,
    bool add_special_tokens,
    const std::string& path,
    const ServedModel& model);

// What a rendered conversation ends with.
enum class PromptEnd {
  kAnswer, // the beginning of the assistant's next message
  kMessage, // the end of the last one
};

// What the model's chat template makes of the messages.
// Errors: kInvalidRequest (the template's own, reason "template_error"; a model
//         without a template).
Result<std::string> render_chat(
    const ChatRequest& request,
    const ServedModel& model,
    PromptEnd end = PromptEnd::kAnswer);

// The tokens of it; a bos token that both the template and the tokenizer put in
// front is there once, and an eos token that the tokenizer appends is not
// there.
// Errors: kInvalidRequest, as of encode_text().
Result<std::vector<TokenId>> encode_chat(
    const std::string& rendered,
    const ServedModel& model);

// Of both. Without max_tokens the answer may take what is left of the context.
//
// Errors: kInvalidRequest (as above; a prompt and an answer that don't fit,
//         reason "context_length_exceeded"; a token that the model lacks; a
//         format of the answer that can't be compiled).
Result<GenerationRequest> make_generation(
    const ChatRequest& request,
    const ServedModel& model);

// One of a request's prompts: the text as it is, with the tokenizer's own
// special tokens; or the ids, as they are. Without max_tokens the answer has up
// to 512 tokens, within the context.
//
// Errors: as above.
Result<GenerationRequest> make_generation(
    const CompletionRequest& request,
    const CompletionPrompt& prompt,
    const ServedModel& model);

// The generations of `n` answers to one prompt: equal but for their seeds.
std::vector<GenerationRequest> repeat(
    const GenerationRequest& generation,
    int n);

} // namespace ingle
