#include "api/request_options.h"

#include <charconv>
#include <limits>
#include <utility>

#include "api/error_body.h"
#include "api/json_reader.h"

namespace ingle {
namespace {

constexpr float kDefaultTemperature = 0.7f;
constexpr int kMaxInt = std::numeric_limits<int>::max();

Status
read_max_tokens(const JsonObject& body, int least, RequestOptions& options) {
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    INGLE_ASSIGN_OR_RETURN(
        const auto value, body.get_integer_or_unset(key, least, kMaxInt));
    if (value) {
      options.max_tokens = static_cast<int>(*value);
      options.max_tokens_field = key;
    }
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto min_tokens, body.get_integer("min_tokens", 0, kMaxInt));
  options.min_tokens = static_cast<int>(min_tokens.value_or(0));
  if (options.max_tokens && options.min_tokens > *options.max_tokens) {
    return invalid_field(
        "min_tokens",
        "expected at most " + options.max_tokens_field + " (" +
            std::to_string(*options.max_tokens) + "), got " +
            std::to_string(options.min_tokens));
  }
  return {};
}

Result<std::string> stop_string(const Json& value, const std::string& path) {
  if (!value.is_string()) {
    return wrong_type(path, "a string", value);
  }
  auto text = value.get<std::string>();
  if (text.size() > kMaxStopBytes) {
    return invalid_field(
        path,
        "expected at most " + std::to_string(kMaxStopBytes) + " bytes, got " +
            std::to_string(text.size()));
  }
  return text;
}

Result<std::vector<std::string>> read_stop(const JsonObject& body) {
  const std::string path = "stop";
  std::vector<std::string> stop;
  const Json* const value = body.find(path);
  if (value == nullptr) {
    return stop;
  }
  if (value->is_string()) {
    INGLE_ASSIGN_OR_RETURN(std::string text, stop_string(*value, path));
    stop.push_back(std::move(text));
    return stop;
  }
  if (!value->is_array()) {
    return wrong_type(path, "a string or an array of strings", *value);
  }
  if (value->size() > kMaxStopStrings) {
    return invalid_field(
        path,
        "expected at most " + std::to_string(kMaxStopStrings) +
            " strings, got " + std::to_string(value->size()));
  }
  for (const Json& item : *value) {
    INGLE_ASSIGN_OR_RETURN(
        std::string text, stop_string(item, indexed_path(path, stop.size())));
    stop.push_back(std::move(text));
  }
  return stop;
}

Result<bool> read_include_usage(const JsonObject& body) {
  const Json* const value = body.find("stream_options");
  if (value == nullptr) {
    return false;
  }
  INGLE_ASSIGN_OR_RETURN(
      const JsonObject options, JsonObject::from(*value, "stream_options"));
  INGLE_ASSIGN_OR_RETURN(
      const auto include_usage, options.get_bool("include_usage"));
  return include_usage.value_or(false);
}

// A key of logit_bias, which JSON makes a string. Whether the model has the
// token is seen later.
std::optional<TokenId> parse_token_id(std::string_view text) {
  TokenId id = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, id);
  const bool canonical = text == std::to_string(id); // no 007: keys are unique
  return error == std::errc() && rest == end && id >= 0 && canonical
      ? std::optional(id)
      : std::nullopt;
}

Result<std::vector<std::pair<TokenId, float>>> read_logit_bias(
    const JsonObject& body) {
  const std::string path = "logit_bias";
  std::vector<std::pair<TokenId, float>> biases;
  const Json* const value = body.find(path);
  if (value == nullptr) {
    return biases;
  }
  if (!value->is_object()) {
    return wrong_type(path, "an object of token ids to numbers", *value);
  }
  if (value->size() > kMaxBiases) {
    return invalid_field(
        path,
        "expected at most " + std::to_string(kMaxBiases) + " tokens, got " +
            std::to_string(value->size()));
  }
  for (const auto& [key, bias] : value->items()) {
    const std::optional<TokenId> id = parse_token_id(key);
    if (!id) {
      return invalid_field(
          path,
          "expected keys that are token ids, like \"42\", got " +
              quote_text(key));
    }
    INGLE_ASSIGN_OR_RETURN(
        const double number, number_in(bias, path + "." + key, -100, 100));
    biases.emplace_back(*id, static_cast<float>(number));
  }
  return biases;
}

// Sets `value` where the body has the field.
Status read_number(
    const JsonObject& body,
    const char* key,
    double min,
    double max,
    float& value) {
  INGLE_ASSIGN_OR_RETURN(const auto given, body.get_number(key, min, max));
  if (given) {
    value = static_cast<float>(*given);
  }
  return {};
}

Status read_count(const JsonObject& body, const char* key, int& value) {
  INGLE_ASSIGN_OR_RETURN(const auto given, body.get_integer(key, 0, kMaxInt));
  if (given) {
    value = static_cast<int>(*given);
  }
  return {};
}

Status read_penalties(const JsonObject& body, SamplingParams& params) {
  INGLE_ASSIGN_OR_RETURN(
      const auto repetition, body.get_number("repetition_penalty", 0, 100));
  if (repetition && *repetition > 0 &&
      *repetition < static_cast<double>(kLeastRepetitionPenalty)) {
    return invalid_field(
        "repetition_penalty", "expected 0 (off), or a number from 0.01 to 100");
  }
  if (repetition) {
    params.repetition_penalty = static_cast<float>(*repetition);
  }
  INGLE_RETURN_IF_ERROR(
      read_count(body, "repetition_context_size", params.repetition_context));
  INGLE_RETURN_IF_ERROR(
      read_number(body, "presence_penalty", -2, 2, params.presence_penalty));
  INGLE_RETURN_IF_ERROR(
      read_count(body, "presence_context_size", params.presence_context));
  INGLE_RETURN_IF_ERROR(
      read_number(body, "frequency_penalty", -2, 2, params.frequency_penalty));
  return read_count(body, "frequency_context_size", params.frequency_context);
}

Status read_sampling(const JsonObject& body, SamplingParams& params) {
  INGLE_ASSIGN_OR_RETURN(params.logit_bias, read_logit_bias(body));
  INGLE_RETURN_IF_ERROR(read_penalties(body, params));
  INGLE_RETURN_IF_ERROR(
      read_number(body, "temperature", 0, 2, params.temperature));
  INGLE_RETURN_IF_ERROR(read_number(body, "top_p", 0, 1, params.top_p));
  INGLE_RETURN_IF_ERROR(read_number(body, "min_p", 0, 1, params.min_p));
  INGLE_RETURN_IF_ERROR(
      read_number(body, "xtc_probability", 0, 1, params.xtc_probability));
  INGLE_RETURN_IF_ERROR(
      read_number(body, "xtc_threshold", 0, 0.5, params.xtc_threshold));
  INGLE_ASSIGN_OR_RETURN(
      const auto top_k, body.get_integer_or_unset("top_k", 0, kMaxInt));
  if (top_k) {
    params.top_k = static_cast<int>(*top_k);
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto seed,
      body.get_integer_or_unset(
          "seed",
          std::numeric_limits<int64_t>::min(),
          std::numeric_limits<int64_t>::max()));
  if (seed) {
    params.seed = static_cast<uint64_t>(*seed);
  }
  return {};
}

Status read_flags(const JsonObject& body, RequestOptions& options) {
  INGLE_ASSIGN_OR_RETURN(const auto stream, body.get_bool("stream"));
  options.stream = stream.value_or(false);
  INGLE_ASSIGN_OR_RETURN(options.include_usage, read_include_usage(body));
  INGLE_ASSIGN_OR_RETURN(const auto progress, body.get_bool("return_progress"));
  options.return_progress = progress.value_or(false);
  INGLE_ASSIGN_OR_RETURN(const auto cache, body.get_bool("cache"));
  options.use_cache = cache.value_or(true);
  INGLE_ASSIGN_OR_RETURN(const auto ignore_eos, body.get_bool("ignore_eos"));
  options.ignore_eos = ignore_eos.value_or(false);
  return {};
}

} // namespace

SamplingParams default_sampling(const GenerationDefaults& defaults) {
  SamplingParams params;
  params.temperature = defaults.temperature.value_or(kDefaultTemperature);
  params.top_p = defaults.top_p.value_or(params.top_p);
  params.min_p = defaults.min_p.value_or(params.min_p);
  params.top_k = defaults.top_k.value_or(params.top_k);
  params.repetition_penalty = defaults.repetition_penalty.value_or(1);
  return params;
}

Result<RequestOptions> read_request_options(
    const JsonObject& body,
    const GenerationDefaults& defaults,
    int least_max_tokens) {
  RequestOptions options;
  options.sampling = default_sampling(defaults);
  // Any name is served by the loaded model, and any user is: only their types
  // are checked.
  INGLE_RETURN_IF_ERROR(body.get_string("model").status());
  INGLE_RETURN_IF_ERROR(body.get_string("user").status());
  INGLE_ASSIGN_OR_RETURN(options.adapter, body.get_string("adapter"));
  INGLE_RETURN_IF_ERROR(read_max_tokens(body, least_max_tokens, options));
  INGLE_RETURN_IF_ERROR(read_sampling(body, options.sampling));
  INGLE_ASSIGN_OR_RETURN(options.stop, read_stop(body));
  INGLE_ASSIGN_OR_RETURN(options.format, read_answer_format(body));
  INGLE_ASSIGN_OR_RETURN(const auto n, body.get_integer("n", 1, kMaxChoices));
  options.n = static_cast<int>(n.value_or(1));
  INGLE_RETURN_IF_ERROR(read_flags(body, options));
  return options;
}

} // namespace ingle
