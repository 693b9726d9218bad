#include "api/prompt.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

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

std::string template_context(
    const ChatRequest& request,
    const ServedModel& model) {
  std::string context = "{\"messages\":" + request.messages;
  if (!request.tools.empty()) {
    context += ",\"tools\":" + request.tools;
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

Result<std::vector<TokenId>> encode(
    const std::string& text,
    const ServedModel& model) {
  if (model.tokenizer == nullptr) {
    return Status::invalid_request(
               "the model " + model.name +
               " has no tokenizer.json, so it can't be given text")
        .with_reason("no_tokenizer");
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

// `fallback`: the answer's length where the request leaves it open.
Result<int> resolve_max_tokens(
    size_t prompt_tokens,
    std::optional<int> asked,
    int fallback,
    const ServedModel& model) {
  const auto context = static_cast<size_t>(std::max(model.context_length, 0));
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
  if (asked && *asked > left) {
    return Status::invalid_request(
               prompt_has + " and max_tokens is " + std::to_string(*asked) +
               ", together more than" + context_is +
               ": shorten the prompt or lower max_tokens")
        .with_reason("context_length_exceeded")
        .with_where("max_tokens");
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
      resolve_max_tokens(
          prompt.size(), options.max_tokens, default_max_tokens, model));
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
  return make_request(
      std::move(ids), request.options, std::numeric_limits<int>::max(), model);
}

Result<GenerationRequest> make_generation(
    const CompletionRequest& request,
    const ServedModel& model) {
  INGLE_ASSIGN_OR_RETURN(
      std::vector<TokenId> ids, encode(request.prompt, model));
  return make_request(
      std::move(ids), request.options, kCompletionMaxTokens, model);
}

} // namespace ingle
