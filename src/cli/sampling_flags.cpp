#include "cli/sampling_flags.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <CLI/CLI.hpp>

namespace ingle {
namespace {

constexpr double kMaxPenalty = 2; // as OpenAI's
constexpr float kMaxBias = 100;

// CLI::Range lets NaN pass.
CLI::Validator within(double low, double high) {
  const std::string range =
      CLI::detail::to_string(low) + " to " + CLI::detail::to_string(high);
  return CLI::Validator(
      [low, high, range](const std::string& text) {
        double value = 0;
        const bool is_good = CLI::detail::lexical_cast(text, value) &&
            value >= low && value <= high;
        return is_good ? std::string() : text + " is not from " + range;
      },
      "FLOAT from " + range);
}

// 0 is off, and so is 1.
std::string check_repetition_penalty(const std::string& text) {
  double value = 0;
  const bool is_good = CLI::detail::lexical_cast(text, value) &&
      (value == 0 ||
       (value >= static_cast<double>(kLeastRepetitionPenalty) && value <= 100));
  return is_good ? std::string()
                 : text + " is neither 0 (off) nor from 0.01 to 100";
}

// The flags of generate, chat and serve.
struct CommonFlags {
  std::optional<float>& temperature;
  std::optional<float>& top_p;
  std::optional<float>& min_p;
  std::optional<int>& top_k;
};

void add_common(CLI::App& command, CommonFlags flags) {
  command
      .add_option(
          "--temperature,--temp",
          flags.temperature,
          "How freely tokens are picked; 0: always the likeliest")
      ->check(within(0.0, 5.0));
  command
      .add_option(
          "--top-p",
          flags.top_p,
          "Keep the likeliest tokens up to this sum; 1: all")
      ->check(within(0.0, 1.0));
  command
      .add_option(
          "--min-p",
          flags.min_p,
          "Keep tokens at least this likely against the likeliest; 0: all")
      ->check(within(0.0, 1.0));
  command
      .add_option("--top-k", flags.top_k, "Keep the k likeliest tokens; 0: all")
      ->check(CLI::NonNegativeNumber);
}

// "42=-1.5". Throws what CLI11 reports.
std::pair<TokenId, float> parse_bias(const std::string& text) {
  const char* const equals = std::strchr(text.c_str(), '=');
  char* id_end = nullptr;
  char* bias_end = nullptr;
  const long id = std::strtol(text.c_str(), &id_end, 10);
  const float bias = equals ? std::strtof(equals + 1, &bias_end) : 0;
  const bool is_good = equals && id_end == equals && id_end != text.c_str() &&
      id >= 0 && id <= std::numeric_limits<TokenId>::max() &&
      bias_end != equals + 1 && *bias_end == '\0' && std::abs(bias) <= kMaxBias;
  if (!is_good) {
    throw CLI::ValidationError(
        "--logit-bias",
        "has to be a token id and a number from -100 to 100, like 42=-1.5");
  }
  return {static_cast<TokenId>(id), bias};
}

void add_bias(
    std::vector<std::pair<TokenId, float>>& biases,
    const std::string& text) {
  const auto bias = parse_bias(text);
  for (const auto& other : biases) {
    if (other.first == bias.first) {
      throw CLI::ValidationError(
          "--logit-bias",
          "names the token " + std::to_string(bias.first) + " twice");
    }
  }
  biases.push_back(bias);
}

// As the API reads it: any 64 bits with a sign, and -1 leaves the choice to us.
// CLI11's own reading wraps what is below 0 and clamps what is too large.
std::optional<uint64_t> parse_seed(const std::string& text) {
  int64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc() || rest != end) {
    throw CLI::ValidationError(
        "--seed",
        "has to be a whole number from -2^63 to 2^63 - 1; -1: a new one each "
        "time");
  }
  return seed == -1 ? std::nullopt : std::optional(static_cast<uint64_t>(seed));
}

template <typename T>
void set(T& value, const std::optional<T>& given) {
  value = given.value_or(value);
}

} // namespace

void SamplingFlags::apply_to(SamplingParams& params) const {
  if (!logit_bias.empty()) {
    params.logit_bias = logit_bias;
  }
  set(params.repetition_penalty, repetition_penalty);
  set(params.presence_penalty, presence_penalty);
  set(params.frequency_penalty, frequency_penalty);
  set(params.temperature, temperature);
  set(params.top_p, top_p);
  set(params.min_p, min_p);
  set(params.xtc_probability, xtc_probability);
  set(params.xtc_threshold, xtc_threshold);
  set(params.top_k, top_k);
  if (seed) {
    params.seed = seed;
  }
}

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
  add_common(
      command, {flags.temperature, flags.top_p, flags.min_p, flags.top_k});
  command
      .add_option(
          "--xtc-probability",
          flags.xtc_probability,
          "How often the likeliest tokens are left out, all but one")
      ->check(within(0.0, 1.0));
  command
      .add_option(
          "--xtc-threshold",
          flags.xtc_threshold,
          "With --xtc-probability: from which likelihood on")
      ->check(within(0.0, 0.5));
  command
      .add_option(
          "--repetition-penalty",
          flags.repetition_penalty,
          "Above 1: make tokens that were there less likely; 1: off")
      ->check(CLI::Validator(check_repetition_penalty, ""));
  command
      .add_option(
          "--presence-penalty",
          flags.presence_penalty,
          "Taken off tokens that were there")
      ->check(within(-kMaxPenalty, kMaxPenalty));
  command
      .add_option(
          "--frequency-penalty",
          flags.frequency_penalty,
          "Taken off tokens each time that they were there")
      ->check(within(-kMaxPenalty, kMaxPenalty));
  command
      .add_option_function<std::vector<std::string>>(
          "--logit-bias",
          [&flags](const std::vector<std::string>& given) {
            for (const auto& text : given) {
              add_bias(flags.logit_bias, text);
            }
          },
          "ID=BIAS: what is added to a token's logit; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--seed",
          [&flags](const std::string& text) { flags.seed = parse_seed(text); },
          "Same seed, same answer; -1: a new one each time")
      ->type_name("INT");
}

void add_default_flags(CLI::App& command, GenerationDefaults& defaults) {
  add_common(
      command,
      {defaults.temperature, defaults.top_p, defaults.min_p, defaults.top_k});
  command
      .add_option(
          "--max-tokens",
          defaults.max_tokens,
          "Length of an answer where the request gives none")
      ->check(CLI::PositiveNumber);
  command
      .add_option_function<std::string>(
          "--thinking",
          [&defaults](const std::string& text) {
            defaults.thinking = text == "on";
          },
          "Whether the model thinks where the request doesn't say (default: "
          "as its chat template has it)")
      ->type_name("on|off")
      ->check(CLI::IsMember({"on", "off"}).description(""));
}

} // namespace ingle
