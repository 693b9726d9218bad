// The flags that say how tokens are picked, and what the model's own settings
// become by them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "engine/generator.h"
#include "engine/served_model.h"

namespace CLI {
class App;
}

namespace ingle {

// As the command line gave them. Nothing, or empty: not given.
struct SamplingFlags {
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::optional<float> repetition_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> xtc_probability;
  std::optional<float> xtc_threshold;
  std::optional<int> top_k;
  // Nothing also where -1 was given, as in the API.
  std::optional<uint64_t> seed;

  // Those that were given, over `params`.
  void apply_to(SamplingParams& params) const;
};

// `flags` outlives the parsing.
void add_sampling_flags(CLI::App& command, SamplingFlags& flags);

// Those that a server has a default for.
void add_default_flags(CLI::App& command, GenerationDefaults& defaults);

} // namespace ingle
