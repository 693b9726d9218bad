#include "engine/check_request.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "engine/generator_errors.h"

namespace ingle {
namespace {

Status out_of_range(const char* field, const std::string& range) {
  return Status::invalid_request(std::string(field) + " has to be " + range)
      .with_where(field);
}

Status check_at_least(const char* field, int value, int low) {
  return value >= low ? Status::ok()
                      : out_of_range(field, std::to_string(low) + " or more");
}

struct FloatField {
  const char* name;
  float value;
  float low;
  float high;
  const char* range; // in words
};

// A NaN is within no range: it fails every comparison.
Status check_floats(const SamplingParams& params) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const FloatField fields[] = {
      {"repetition_penalty",
       params.repetition_penalty == 0 ? 1 : params.repetition_penalty,
       kLeastRepetitionPenalty,
       100,
       "from 0.01 to 100, or 0 (off)"},
      {"presence_penalty",
       params.presence_penalty,
       -100,
       100,
       "from -100 to 100"},
      {"frequency_penalty",
       params.frequency_penalty,
       -100,
       100,
       "from -100 to 100"},
      {"temperature", params.temperature, 0, kLargest, "a number from 0 on"},
      {"top_p", params.top_p, 0, 1, "from 0 to 1"},
      {"min_p", params.min_p, 0, 1, "from 0 to 1"},
      {"xtc_probability", params.xtc_probability, 0, 1, "from 0 to 1"},
      {"xtc_threshold", params.xtc_threshold, 0, 0.5f, "from 0 to 0.5"},
  };
  for (const FloatField& field : fields) {
    if (!(field.value >= field.low && field.value <= field.high)) {
      return out_of_range(field.name, field.range);
    }
  }
  return Status::ok();
}

Status check_logit_bias(const SamplingParams& params, int vocab_size) {
  for (const auto& [id, bias] : params.logit_bias) {
    if (id < 0 || id >= vocab_size) {
      return Status::invalid_request(
                 "logit_bias: the token id " + std::to_string(id) +
                 " is not in the model's vocabulary of " +
                 std::to_string(vocab_size))
          .with_where("logit_bias");
    }
    if (!(bias >= -100 && bias <= 100)) {
      return Status::invalid_request(
                 "logit_bias: the bias of token " + std::to_string(id) +
                 " has to be from -100 to 100")
          .with_where("logit_bias");
    }
  }
  return Status::ok();
}

Status check_sampling(const SamplingParams& params, int vocab_size) {
  INGLE_RETURN_IF_ERROR(check_logit_bias(params, vocab_size));
  INGLE_RETURN_IF_ERROR(check_floats(params));
  INGLE_RETURN_IF_ERROR(
      check_at_least("repetition_context", params.repetition_context, 0));
  INGLE_RETURN_IF_ERROR(
      check_at_least("presence_context", params.presence_context, 0));
  INGLE_RETURN_IF_ERROR(
      check_at_least("frequency_context", params.frequency_context, 0));
  INGLE_RETURN_IF_ERROR(
      check_at_least("min_tokens_to_keep", params.min_tokens_to_keep, 1));
  return check_at_least("top_k", params.top_k, 0);
}

Status check_prompt(const std::vector<TokenId>& prompt, int vocab_size) {
  if (prompt.empty()) {
    return Status::invalid_request("the prompt has no tokens")
        .with_where("prompt");
  }
  const auto bad = std::find_if(prompt.begin(), prompt.end(), [&](TokenId id) {
    return id < 0 || id >= vocab_size;
  });
  if (bad != prompt.end()) {
    return Status::invalid_request(
               "the token id " + std::to_string(*bad) +
               " is not in the model's vocabulary of " +
               std::to_string(vocab_size))
        .with_where("prompt");
  }
  return Status::ok();
}

// Prompt and answer together do not fit in a context of `context` tokens.
Status context_length_exceeded(
    int64_t prompt_tokens,
    int64_t max_tokens,
    int64_t context) {
  const std::string prompt =
      "the prompt has " + std::to_string(prompt_tokens) + " tokens";
  const std::string limit =
      "the model's context holds " + std::to_string(context);
  const std::string message = prompt_tokens > context
      ? prompt + ", but " + limit + ": shorten it"
      : prompt + " and the answer may have " + std::to_string(max_tokens) +
          ", but " + limit + ": shorten the prompt or ask for at most " +
          std::to_string(context - prompt_tokens);
  return Status::invalid_request(message)
      .with_reason("context_length_exceeded")
      .with_where(prompt_tokens > context ? "prompt" : "max_tokens");
}

// They do not fit in memory.
Status context_over_budget(
    int64_t prompt_tokens,
    int64_t max_tokens,
    int64_t fitting) {
  return Status::invalid_request(
             "the prompt has " + std::to_string(prompt_tokens) +
             " tokens and the answer may have " + std::to_string(max_tokens) +
             ", together " + std::to_string(prompt_tokens + max_tokens) +
             ", but " + std::to_string(fitting) +
             " fit in the memory that may be used: ask for less, or allow "
             "more with --memory-budget")
      .with_reason(kContextOverBudget)
      .with_where(prompt_tokens > fitting ? "prompt" : "max_tokens");
}

Status check_lengths(const GenerationRequest& request) {
  INGLE_RETURN_IF_ERROR(check_at_least("max_tokens", request.max_tokens, 0));
  INGLE_RETURN_IF_ERROR(check_at_least("min_tokens", request.min_tokens, 0));
  if (request.min_tokens > request.max_tokens) {
    return out_of_range(
        "min_tokens",
        "at most max_tokens, which is " + std::to_string(request.max_tokens));
  }
  return check_at_least("top_logprobs", request.top_logprobs.value_or(0), 0);
}

} // namespace

Status check_request(
    const GenerationRequest& request,
    const ServedModel& model) {
  INGLE_RETURN_IF_ERROR(check_prompt(request.prompt, model.vocab_size));
  INGLE_RETURN_IF_ERROR(check_lengths(request));
  INGLE_RETURN_IF_ERROR(check_sampling(request.sampling, model.vocab_size));
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  if (prompt_tokens + request.max_tokens > model.context_length) {
    return context_length_exceeded(
        prompt_tokens, request.max_tokens, model.context_length);
  }
  if (prompt_tokens + request.max_tokens > model.usable_context()) {
    return context_over_budget(
        prompt_tokens, request.max_tokens, model.usable_context());
  }
  return Status::ok();
}

} // namespace ingle
