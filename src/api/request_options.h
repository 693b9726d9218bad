// The knobs that chat and text completions share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/answer_format.h"
#include "base/status.h"
#include "engine/generator.h"
#include "engine/served_model.h"

namespace ingle {

class JsonObject;

inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopBytes = 1024; // of each
inline constexpr size_t kMaxBiases = 4096;
inline constexpr int kMaxChoices = 128; // prompts × n of one request
inline constexpr int kMaxTopLogprobs = 20;

struct RequestOptions {
  // Nothing: the choice is ours; for max_tokens, top_k, seed and top_logprobs
  // clients say that with -1, too.
  std::optional<int> max_tokens;
  // The field that it came in: this one or max_completion_tokens, which wins.
  std::string max_tokens_field = "max_tokens";
  int min_tokens = 0;
  SamplingParams sampling; // what the request leaves open is as by default
  std::vector<std::string> stop;
  std::optional<AnswerFormat> format; // nothing: any text
  bool ignore_eos = false;
  // How many alternatives to each token are asked for; nothing: no
  // log-probabilities. Chat and text completions spell it differently: their
  // own parsers read it.
  std::optional<int> top_logprobs;
  int n = 1; // answers to each prompt
  bool stream = false;
  bool include_usage = false; // stream_options.include_usage
  bool return_progress = false; // how far the prompt is, in a stream
  std::optional<std::string> adapter; // nothing: what holds by default
  bool use_cache = true; // "cache": false keeps a request by itself
};

// What holds where a request says nothing: `defaults`, else a constant
// (temperature 0.7, XTC's threshold 0.1, the rest off).
SamplingParams default_sampling(const GenerationDefaults& defaults);

// The ranges are OpenAI's where it has the field; `least_max_tokens` is 0 or 1.
//
// What the request leaves open is as in `defaults`.
// Errors: kInvalidRequest, naming the field. Unknown ones are ignored.
Result<RequestOptions> read_request_options(
    const JsonObject& body,
    const GenerationDefaults& defaults,
    int least_max_tokens);

} // namespace ingle
