// The knobs that chat and text completions share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/generator.h"

namespace ingle {

class JsonObject;

inline constexpr size_t kMaxStopStrings = 16;

// As the client gave them; nothing: it left the choice to us, which for
// max_tokens, top_k and seed -1 says too.
struct RequestOptions {
  std::optional<int> max_tokens; // >= 1
  // The field that it came in: this one or max_completion_tokens, which wins.
  std::string max_tokens_field = "max_tokens";
  std::optional<float> temperature; // [0, 2]
  std::optional<float> top_p; // [0, 1]
  std::optional<int> top_k; // >= 0
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  bool stream = false;
  bool include_usage = false; // stream_options.include_usage
};

// Errors: kInvalidRequest, naming the field; also for those that would change
// the answer and that ingle does not have yet (n above 1, logprobs,
// response_format, penalties, min_p, xtc_probability, logit_bias), reason
// "unsupported_parameter", unless their value changes nothing. Other unknown
// fields are ignored.
Result<RequestOptions> read_request_options(const JsonObject& body);

// Per knob: the request, else generation_config.json, else a constant.
SamplingParams resolve_sampling(
    const RequestOptions& options,
    const GenerationDefaults& defaults);

} // namespace ingle
