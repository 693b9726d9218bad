#include "api/prompt.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "api/json_reader.h"

namespace ingle {
namespace {

constexpr int kCompletionMaxTokens = 512;

// What the template is given by us; a client can't replace it.
constexpr std::array<std::string_view, 5> kOwnVariables =
    {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"};

bool is_own_variable(std::string_view name) {
  return std::find(kOwnVariables.begin(), kOwnVariables.end(), name) !=
      kOwnVariables.end();
}

bool has_variable(const ChatRequest& request, std::string_view wanted) {
  for (const auto& [name, value] : request.template_variables) {
    if (name == wanted) {
      return true;
    }
  }
  return false;
}

std::string template_context(
    const ChatRequest& request,
    const ServedModel& model) {
  std::string context = "{\"messages\":" + request.messages;
  // transformers passes these always: templates ask whether they are none.
  context += ",\"tools\":" + (request.tools.empty() ? "null" : request.tools);
  if (!has_variable(request, "documents")) {
    context += ",\"documents\":null";
  }
  context += ",\"add_generation_prompt\":true";
  context += ",\"bos_token\":" + to_text(Json(model.bos_token));
  context += ",\"eos_token\":" + to_text(Json(model.eos_token));
  for (const auto& [name, value] : request.template_variables) {
    if (!is_own_variable(name)) {
      context += "," + to_text(Json(name)) + ":" + value;
    }
  }
  context += "}";
  return context;
}

size_t context_of(const ServedModel& model) {
  return static_cast<size_t>(std::max(model.context_length, 0));
}

Result<std::vector<TokenId>> encode(
    const std::string& text,
    const ServedModel& model) {
  if (model.tokenizer == nullptr) {
    return Status::invalid_request(
               "the model " + model.name +
               " has no tokenizer.json, so it can't be given text")
        .with_reason("no_tokenizer");
  }
  const size_t context = context_of(model);
  if (text.size() > context * kMaxBytesPerToken) {
    return Status::invalid_request(
               "the prompt has " + std::to_string(text.size()) +
               " bytes, more than fit the model's context of " +
               std::to_string(context) + " tokens: shorten it")
        .with_reason("context_length_exceeded");
  }
  return model.tokenizer->encode(text, /*add_special_tokens=*/true);
}

void drop_doubled_bos(std::vector<TokenId>& ids, const ServedModel& model) {
  if (model.bos_token.empty() || ids.size() < 2) {
    return;
  }
  const std::optional<TokenId> bos =
      model.tokenizer->token_to_id(model.bos_token);
  if (bos && ids[0] == *bos && ids[1] == *bos) {
    ids.erase(ids.begin());
  }
}

// A prompt that ends in eos is one that nothing follows. What the tokenizer
// appends is what it makes of no text; one token that is bos too stands in
// front.
Status drop_appended_eos(std::vector<TokenId>& ids, const ServedModel& model) {
  const std::optional<TokenId> eos = model.eos_token.empty()
      ? std::nullopt
      : model.tokenizer->token_to_id(model.eos_token);
  if (!eos || ids.empty() || ids.back() != *eos) {
    return {};
  }
  INGLE_ASSIGN_OR_RETURN(
      const std::vector<TokenId> added,
      model.tokenizer->encode("", /*add_special_tokens=*/true));
  const bool in_front = added.size() == 1 && model.bos_token == model.eos_token;
  if (!added.empty() && added.back() == *eos && !in_front) {
    ids.pop_back();
  }
  return {};
}

// `fallback`: the answer's length where the request leaves it open.
Result<int> resolve_max_tokens(
    size_t prompt_tokens,
    const RequestOptions& options,
    int fallback,
    const ServedModel& model) {
  const size_t context = context_of(model);
  const std::string prompt_has =
      "the prompt has " + std::to_string(prompt_tokens) + " tokens";
  const std::string context_is =
      " the model's context of " + std::to_string(context) + " tokens";
  if (prompt_tokens >= context) {
    return Status::invalid_request(
               prompt_has + ", which leaves no room for an answer in" +
               context_is + ": shorten it")
        .with_reason("context_length_exceeded");
  }
  const auto left = static_cast<int>(context - prompt_tokens);
  const std::optional<int> asked = options.max_tokens;
  if (asked && *asked > left) {
    const std::string& field = options.max_tokens_field;
    return Status::invalid_request(
               prompt_has + " and " + field + " is " + std::to_string(*asked) +
               ", together more than" + context_is +
               ": shorten the prompt or lower " + field)
        .with_reason("context_length_exceeded")
        .with_where(field);
  }
  return asked.value_or(std::min(fallback, left));
}

Result<GenerationRequest> make_request(
    std::vector<TokenId> prompt,
    const RequestOptions& options,
    int default_max_tokens,
    const ServedModel& model) {
  if (prompt.empty()) {
    return Status::invalid_request("the prompt has no tokens");
  }
  GenerationRequest generation;
  INGLE_ASSIGN_OR_RETURN(
      generation.max_tokens,
      resolve_max_tokens(prompt.size(), options, default_max_tokens, model));
  generation.prompt = std::move(prompt);
  generation.sampling = resolve_sampling(options, model.defaults);
  generation.stop = options.stop;
  return generation;
}

} // namespace

Result<GenerationRequest> make_generation(
    const ChatRequest& request,
    const ServedModel& model) {
  if (model.chat_template == nullptr) {
    return Status::invalid_request(
               "the model " + model.name +
               " has no chat template: use /v1/completions")
        .with_reason("no_chat_template");
  }
  const std::string context = template_context(request, model);
  INGLE_ASSIGN_OR_RETURN(
      const std::string text, model.chat_template->render(context));
  INGLE_ASSIGN_OR_RETURN(std::vector<TokenId> ids, encode(text, model));
  drop_doubled_bos(ids, model);
  INGLE_RETURN_IF_ERROR(drop_appended_eos(ids, model));
  return make_request(
      std::move(ids), request.options, std::numeric_limits<int>::max(), model);
}

Result<GenerationRequest> make_generation(
    const CompletionRequest& request,
    const ServedModel& model) {
  std::vector<TokenId> ids;
  if (const auto* const text = std::get_if<std::string>(&request.prompt)) {
    INGLE_ASSIGN_OR_RETURN(ids, encode(*text, model));
  } else {
    ids = std::get<std::vector<TokenId>>(request.prompt);
  }
  return make_request(
      std::move(ids), request.options, kCompletionMaxTokens, model);
}

} // namespace ingle
