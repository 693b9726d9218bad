#include "api/request_options.h"

#include <array>
#include <limits>

#include "api/json_reader.h"

namespace ingle {
namespace {

constexpr float kDefaultTemperature = 0.7f;
constexpr int kMaxInt = std::numeric_limits<int>::max();

Status not_yet(const std::string& path, const std::string& what) {
  return invalid_field(path, what + " is not supported yet")
      .with_reason("unsupported_parameter");
}

struct MissingKnob {
  const char* name;
  double min;
  double max;
  double neutral; // changes nothing
};

constexpr std::array<MissingKnob, 5> kMissingKnobs = {{
    {"frequency_penalty", -2, 2, 0},
    {"presence_penalty", -2, 2, 0},
    {"repetition_penalty", 0, 2, 1},
    {"min_p", 0, 1, 0},
    {"xtc_probability", 0, 1, 0},
}};

Status refuse_missing_knobs(const JsonObject& body) {
  for (const MissingKnob& knob : kMissingKnobs) {
    INGLE_ASSIGN_OR_RETURN(
        const auto value, body.get_number(knob.name, knob.min, knob.max));
    if (value.value_or(knob.neutral) != knob.neutral) {
      return not_yet(
          knob.name,
          "a value other than " +
              std::to_string(static_cast<int>(knob.neutral)));
    }
  }
  if (const Json* const bias = body.find("logit_bias")) {
    INGLE_RETURN_IF_ERROR(JsonObject::from(*bias, "logit_bias").status());
    if (!bias->empty()) {
      return not_yet("logit_bias", "biasing tokens");
    }
  }
  return {};
}

Status refuse_missing_features(const JsonObject& body) {
  INGLE_ASSIGN_OR_RETURN(const auto n, body.get_integer("n", 1, kMaxInt));
  if (n.value_or(1) != 1) {
    return not_yet("n", "more than one choice");
  }
  const Json* const logprobs = body.find("logprobs");
  if (logprobs != nullptr && *logprobs != Json(false)) {
    return not_yet("logprobs", "asking for log-probabilities");
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto top, body.get_integer("top_logprobs", 0, kMaxInt));
  if (top.value_or(0) != 0) {
    return not_yet("top_logprobs", "asking for log-probabilities");
  }
  if (const Json* const format = body.find("response_format")) {
    INGLE_ASSIGN_OR_RETURN(
        const JsonObject object, JsonObject::from(*format, "response_format"));
    INGLE_ASSIGN_OR_RETURN(const auto type, object.get_string("type"));
    if (type != "text") {
      return not_yet("response_format.type", "a format other than \"text\"");
    }
  }
  return {};
}

// An integer, which clients of other servers leave out by sending -1.
Result<std::optional<int64_t>> get_unless_unset(
    const JsonObject& body,
    std::string_view key,
    int64_t min,
    int64_t max) {
  const Json* const value = body.find(key);
  const bool unset = value != nullptr && value->is_number_integer() &&
      !value->is_number_unsigned() && value->get<int64_t>() == -1;
  return unset ? std::optional<int64_t>() : body.get_integer(key, min, max);
}

Status read_max_tokens(const JsonObject& body, RequestOptions& options) {
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    INGLE_ASSIGN_OR_RETURN(
        const auto value, get_unless_unset(body, key, 1, kMaxInt));
    if (value) {
      options.max_tokens = static_cast<int>(*value);
      options.max_tokens_field = key;
    }
  }
  return {};
}

Result<std::vector<std::string>> read_stop(const JsonObject& body) {
  std::vector<std::string> stop;
  const Json* const value = body.find("stop");
  if (value == nullptr) {
    return stop;
  }
  if (value->is_string()) {
    stop.push_back(value->get<std::string>());
    return stop;
  }
  if (!value->is_array()) {
    return wrong_type("stop", "a string or an array of strings", *value);
  }
  if (value->size() > kMaxStopStrings) {
    return invalid_field(
        "stop",
        "at most " + std::to_string(kMaxStopStrings) + " strings, got " +
            std::to_string(value->size()));
  }
  for (const Json& item : *value) {
    if (!item.is_string()) {
      const std::string path = "stop[" + std::to_string(stop.size()) + "]";
      return wrong_type(path, "a string", item);
    }
    stop.push_back(item.get<std::string>());
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

} // namespace

Result<RequestOptions> read_request_options(const JsonObject& body) {
  RequestOptions options;
  // Any name is served by the loaded model; only its type is checked.
  INGLE_RETURN_IF_ERROR(body.get_string("model").status());
  INGLE_RETURN_IF_ERROR(refuse_missing_features(body));
  INGLE_RETURN_IF_ERROR(refuse_missing_knobs(body));
  INGLE_RETURN_IF_ERROR(read_max_tokens(body, options));
  INGLE_ASSIGN_OR_RETURN(
      options.temperature, body.get_number("temperature", 0, 2));
  INGLE_ASSIGN_OR_RETURN(options.top_p, body.get_number("top_p", 0, 1));
  INGLE_ASSIGN_OR_RETURN(
      options.top_k, get_unless_unset(body, "top_k", 0, kMaxInt));
  INGLE_ASSIGN_OR_RETURN(
      options.seed,
      get_unless_unset(
          body,
          "seed",
          std::numeric_limits<int64_t>::min(),
          std::numeric_limits<int64_t>::max()));
  INGLE_ASSIGN_OR_RETURN(options.stop, read_stop(body));
  INGLE_ASSIGN_OR_RETURN(const auto stream, body.get_bool("stream"));
  options.stream = stream.value_or(false);
  INGLE_ASSIGN_OR_RETURN(options.include_usage, read_include_usage(body));
  return options;
}

SamplingParams resolve_sampling(
    const RequestOptions& options,
    const GenerationDefaults& defaults) {
  SamplingParams sampling;
  sampling.temperature = options.temperature.value_or(
      defaults.temperature.value_or(kDefaultTemperature));
  sampling.top_p = options.top_p.value_or(defaults.top_p.value_or(1.0f));
  sampling.top_k = options.top_k.value_or(defaults.top_k.value_or(0));
  sampling.seed = options.seed;
  return sampling;
}

} // namespace ingle
