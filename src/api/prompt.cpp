#include "api/prompt.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "api/call_ids.h"
#include "api/json_reader.h"
#include "api/resume_hints.h"
#include "api/tool_grammar.h"
#include "engine/adapters.h"
#include "engine/generator_errors.h"

namespace ingle {
namespace {

constexpr int kCompletionMaxTokens = 512;
constexpr char kContextExceeded[] = "context_length_exceeded";

// Templates of Mistral's refuse ids of calls that are not nine letters and
// digits, which no other client or server makes.
void shorten_call_id(Json& id) {
  constexpr size_t kLength = 9;
  if (!id.is_string()) {
    return;
  }
  const auto text = id.get<std::string>();
  const bool is_short = text.size() == kLength &&
      std::all_of(text.begin(), text.end(), [](char c) {
                          return (c >= '0' && c <= '9') ||
                              (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                        });
  if (!is_short) {
    id = "c" + hash_text(text);
  }
}

Result<std::string> with_short_call_ids(const std::string& messages) {
  INGLE_ASSIGN_OR_RETURN(Json list, parse_json(messages));
  for (Json& message : list) {
    if (message.contains("tool_call_id")) {
      shorten_call_id(message["tool_call_id"]);
    }
    if (message.contains("tool_calls") && message["tool_calls"].is_array()) {
      for (Json& call : message["tool_calls"]) {
        if (call.contains("id")) {
          shorten_call_id(call["id"]);
        }
      }
    }
  }
  return to_text(list);
}

Result<std::string> template_context(
    const ChatRequest& request,
    const ServedModel& model,
    PromptEnd end) {
  std::string messages = request.messages;
  if (model.markup.family == OutputFamily::kMistral) {
    INGLE_ASSIGN_OR_RETURN(messages, with_short_call_ids(messages));
  }
  std::string context = "{\"messages\":" + messages;
  // transformers passes these always: templates ask whether they are none.
  context += ",\"tools\":" +
      (request.tools.definitions.empty() ? "null" : request.tools.definitions);
  if (request.find_variable("documents") == nullptr) {
    context += ",\"documents\":null";
  }
  context += std::string(",\"add_generation_prompt\":") +
      (end == PromptEnd::kAnswer ? "true" : "false");
  // One that the model lacks is undefined: templates ask whether it is.
  for (const auto& [name, text] : model.special_tokens) {
    context += ",\"" + name + "\":" + to_text(Json(text));
  }
  for (const auto& [name, value] : request.template_variables) {
    context += "," + to_text(Json(name)) + ":" + value;
  }
  context += "}";
  return context;
}

size_t context_of(const ServedModel& model) {
  return static_cast<size_t>(std::max(model.context_length, 0));
}

Status too_long(const std::string& path, const std::string& what) {
  return invalid_field(path, what).with_reason(kContextExceeded);
}

void drop_doubled_bos(std::vector<TokenId>& ids, const ServedModel& model) {
  const std::optional<TokenId> bos = model.special_token_id("bos_token");
  if (bos && ids.size() > 1 && ids[0] == *bos && ids[1] == *bos) {
    ids.erase(ids.begin());
  }
}

// A prompt that ends in eos is one that nothing follows. What the tokenizer
// appends is what it makes of no text; one token that is bos too stands in
// front.
Status drop_appended_eos(std::vector<TokenId>& ids, const ServedModel& model) {
  const std::optional<TokenId> eos = model.special_token_id("eos_token");
  if (!eos || ids.empty() || ids.back() != *eos) {
    return {};
  }
  INGLE_ASSIGN_OR_RETURN(
      const std::vector<TokenId> added,
      model.tokenizer->encode("", /*add_special_tokens=*/true));
  const bool in_front =
      added.size() == 1 && model.special_token_id("bos_token") == eos;
  if (!added.empty() && added.back() == *eos && !in_front) {
    ids.pop_back();
  }
  return {};
}

// What prompt and answer have to fit in together.
struct Limit {
  size_t tokens = 0;
  std::string name;
  std::string reason; // of a refusal
};

Limit context_limit(const ServedModel& model) {
  const size_t context = context_of(model);
  return {
      context,
      "the model's context of " + std::to_string(context) + " tokens",
      kContextExceeded};
}

Limit memory_limit(const ServedModel& model) {
  const auto fitting = static_cast<size_t>(model.usable_context());
  return {
      fitting,
      "the " + std::to_string(fitting) +
          " tokens that fit in the server's memory budget",
      kContextOverBudget};
}

// Errors: kInvalidRequest; the message has what is needed, and its parts.
Status check_limit(
    size_t prompt_tokens,
    const RequestOptions& options,
    const std::string& path,
    const Limit& limit) {
  const std::string prompt_has =
      "the prompt has " + std::to_string(prompt_tokens) + " tokens";
  const bool leaves_room = prompt_tokens < limit.tokens ||
      (prompt_tokens == limit.tokens && options.max_tokens == 0);
  if (!leaves_room) {
    return invalid_field(
               path,
               prompt_has + ", which leaves no room for an answer in " +
                   limit.name + ": shorten it")
        .with_reason(limit.reason);
  }
  const size_t left = limit.tokens - prompt_tokens;
  const std::pair<std::string, int> fields[] = {
      {options.max_tokens_field, options.max_tokens.value_or(0)},
      {"min_tokens", options.min_tokens}};
  for (const auto& [field, asked] : fields) {
    const auto needed = static_cast<size_t>(std::max(asked, 0));
    if (needed > left) {
      return invalid_field(
                 field,
                 prompt_has + " and " + field + " is " + std::to_string(asked) +
                     ", together " + std::to_string(prompt_tokens + needed) +
                     ", more than " + limit.name +
                     ": shorten the prompt or lower " + field)
          .with_reason(limit.reason);
    }
  }
  return {};
}

// `fallback`: the answer's length where the request leaves it open.
Result<int> resolve_max_tokens(
    size_t prompt_tokens,
    const RequestOptions& options,
    int fallback,
    const std::string& path,
    const ServedModel& model) {
  for (const Limit& limit : {context_limit(model), memory_limit(model)}) {
    INGLE_RETURN_IF_ERROR(check_limit(prompt_tokens, options, path, limit));
  }
  const int left = model.usable_context() - static_cast<int>(prompt_tokens);
  const int open = model.defaults.max_tokens.value_or(fallback);
  return options.max_tokens.value_or(
      std::min(std::max(open, options.min_tokens), left));
}

Status check_bias(const SamplingParams& sampling, const ServedModel& model) {
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (id >= model.vocab_size) {
      return invalid_field(
          "logit_bias." + std::to_string(id),
          "expected token ids below " + std::to_string(model.vocab_size) +
              ", the size of the model's vocabulary");
    }
  }
  return {};
}

// `path`: where the prompt stands in the body.
// Errors: kInvalidRequest.
Result<std::shared_ptr<const AdapterSet>> choose_adapters(
    const RequestOptions& options,
    const ServedModel& model) {
  if (model.adapters != nullptr) {
    return model.adapters->choose(options.adapter);
  }
  if (options.adapter.value_or("none") != "none") {
    return invalid_field(
        "adapter", "the model " + model.name + " takes no adapters");
  }
  return std::shared_ptr<const AdapterSet>();
}

Result<GenerationRequest> make_request(
    std::vector<TokenId> prompt,
    const RequestOptions& options,
    int default_max_tokens,
    const std::string& path,
    const ServedModel& model) {
  if (prompt.empty()) {
    return invalid_field(path, "expected text that has tokens, got none");
  }
  INGLE_RETURN_IF_ERROR(check_bias(options.sampling, model));
  GenerationRequest generation;
  INGLE_ASSIGN_OR_RETURN(
      generation.max_tokens,
      resolve_max_tokens(
          prompt.size(), options, default_max_tokens, path, model));
  INGLE_ASSIGN_OR_RETURN(generation.adapters, choose_adapters(options, model));
  generation.is_open_ended = !options.max_tokens && !model.defaults.max_tokens;
  generation.prompt = std::move(prompt);
  generation.min_tokens = options.min_tokens;
  generation.sampling = options.sampling;
  generation.stop = options.stop;
  generation.ignore_eos = options.ignore_eos;
  generation.use_cache = options.use_cache;
  generation.top_logprobs = options.top_logprobs;
  return generation;
}

// True iff the answer has a format, and is no tool call: one that is asked for
// stands over the format.
bool has_format(const ChatRequest& request) {
  return request.options.format && !request.tools.choice.is_required;
}

// What the answer to `prompt` has to follow; null: nothing.
Result<std::shared_ptr<const Grammar>> compile_grammar(
    const ChatRequest& request,
    std::string_view prompt,
    const ServedModel& model) {
  const std::string* const thinks = request.find_variable("enable_thinking");
  const bool may_think = thinks == nullptr || *thinks != "false";
  return has_format(request)
      ? compile_format(*request.options.format, prompt, may_think, model)
      : compile_tool_choice(request.tools, prompt, may_think, model);
}

} // namespace

Status no_tokenizer(const std::string& path, const ServedModel& model) {
  return invalid_field(
             path,
             "the model " + model.name +
                 " has no tokenizer.json, so it knows no text: send token ids "
                 "to /v1/completions")
      .with_reason("no_tokenizer");
}

Status check_token_ids(
    const std::vector<TokenId>& ids,
    int vocab_size,
    const std::string& path) {
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](TokenId id) {
    return id < 0 || id >= vocab_size;
  });
  if (bad == ids.end()) {
    return {};
  }
  return invalid_field(
      indexed_path(path, static_cast<size_t>(bad - ids.begin())),
      "expected a token id below " + std::to_string(vocab_size) +
          ", the size of the model's vocabulary, got " + std::to_string(*bad));
}

Result<std::vector<TokenId>> encode_text(
    std::string_view text,
    bool add_special_tokens,
    const std::string& path,
    const ServedModel& model) {
  if (model.tokenizer == nullptr) {
    return no_tokenizer(path, model);
  }
  const size_t context = context_of(model);
  if (text.size() > context * kMaxBytesPerToken) {
    return too_long(
        path,
        "the text has " + std::to_string(text.size()) +
            " bytes, more than fit the model's context of " +
            std::to_string(context) + " tokens: shorten it");
  }
  auto ids = model.tokenizer->encode(text, add_special_tokens);
  if (ids.status().code() == StatusCode::kInvalidRequest) {
    return invalid_field(
        path,
        "expected text that the model's tokenizer knows, got: " +
            ids.status().message());
  }
  return ids;
}

namespace {

// Calls that came without a text, with an empty one. Nothing: there are none.
Result<std::optional<std::string>> with_empty_contents(
    const std::string& messages) {
  INGLE_ASSIGN_OR_RETURN(Json list, parse_json(messages));
  bool is_changed = false;
  for (Json& message : list) {
    if (!message.contains("content")) {
      message["content"] = "";
      is_changed = true;
    }
  }
  return is_changed ? std::optional(to_text(list)) : std::nullopt;
}

Result<std::string> render_messages(
    const ChatRequest& request,
    const ServedModel& model,
    PromptEnd end) {
  INGLE_ASSIGN_OR_RETURN(
      const std::string context, template_context(request, model, end));
  return model.chat_template->render(context);
}

} // namespace

Result<std::string> render_chat(
    const ChatRequest& request,
    const ServedModel& model,
    PromptEnd end) {
  if (model.chat_template == nullptr) {
    return invalid_field(
               "messages",
               "the model " + model.name +
                   " has no chat template: use /v1/completions")
        .with_reason("no_chat_template");
  }
  auto rendered = render_messages(request, model, end);
  if (rendered.status().reason() == "template_error") {
    // Some templates look whether there is a content, others add it to text.
    INGLE_ASSIGN_OR_RETURN(
        const auto messages, with_empty_contents(request.messages));
    if (messages) {
      ChatRequest filled = request;
      filled.messages = *messages;
      rendered = render_messages(filled, model, end);
    }
  }
  if (rendered.is_ok() || rendered.status().reason() != "template_error") {
    return rendered;
  }
  return invalid_field(
             "messages",
             "expected what the model's chat template can render, got: " +
                 rendered.status().message())
      .with_reason("template_error");
}

Result<std::vector<TokenId>> encode_chat(
    const std::string& rendered,
    const ServedModel& model) {
  INGLE_ASSIGN_OR_RETURN(
      std::vector<TokenId> ids,
      encode_text(rendered, /*add_special_tokens=*/true, "messages", model));
  drop_doubled_bos(ids, model);
  INGLE_RETURN_IF_ERROR(drop_appended_eos(ids, model));
  return ids;
}

Result<GenerationRequest> make_generation(
    const ChatRequest& request,
    const ServedModel& model) {
  INGLE_ASSIGN_OR_RETURN(const std::string text, render_chat(request, model));
  INGLE_ASSIGN_OR_RETURN(std::vector<TokenId> ids, encode_chat(text, model));
  std::vector<int> hints;
  if (model.forgets && request.options.use_cache) {
    hints = resume_hints(request, model, ids);
  }
  INGLE_ASSIGN_OR_RETURN(
      GenerationRequest generation,
      make_request(
          std::move(ids),
          request.options,
          std::numeric_limits<int>::max(),
          "messages",
          model));
  generation.resume_hints = std::move(hints);
  OutputRouting routing;
  routing.splits_thoughts = true;
  routing.starts_in_thought = ends_in_open_thought(text, model.markup);
  if (!has_format(request)) {
    routing.tools = request.tools.signatures;
  }
  routing.one_call = !request.tools.choice.allows_several;
  generation.routing =
      std::make_shared<const OutputRouting>(std::move(routing));
  INGLE_ASSIGN_OR_RETURN(
      generation.grammar, compile_grammar(request, text, model));
  return generation;
}

Result<GenerationRequest> make_generation(
    const CompletionRequest& request,
    const CompletionPrompt& prompt,
    const ServedModel& model) {
  std::vector<TokenId> ids;
  if (const auto* const text = std::get_if<std::string>(&prompt.content)) {
    INGLE_ASSIGN_OR_RETURN(
        ids,
        encode_text(*text, /*add_special_tokens=*/true, prompt.path, model));
  } else {
    ids = std::get<std::vector<TokenId>>(prompt.content);
    INGLE_RETURN_IF_ERROR(check_token_ids(ids, model.vocab_size, prompt.path));
  }
  INGLE_ASSIGN_OR_RETURN(
      GenerationRequest generation,
      make_request(
          std::move(ids),
          request.options,
          kCompletionMaxTokens,
          prompt.path,
          model));
  if (request.options.format) {
    INGLE_ASSIGN_OR_RETURN(
        generation.grammar,
        compile_format(
            *request.options.format, "", /*may_think=*/false, model));
  }
  generation.prompt_logprobs =
      request.echo && request.options.top_logprobs.has_value();
  return generation;
}

std::vector<GenerationRequest> repeat(
    const GenerationRequest& generation,
    int n) {
  std::vector<GenerationRequest> all(static_cast<size_t>(n), generation);
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].sampling.seed) {
      *all[i].sampling.seed += i;
    }
  }
  return all;
}

} // namespace ingle
