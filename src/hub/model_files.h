// Which of a repo's files a model needs.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ingle {

inline constexpr std::string_view kConfigFile = "config.json";
inline constexpr std::string_view kWeightsFile = "model.safetensors";
inline constexpr std::string_view kWeightsIndex =
    "model.safetensors.index.json";

// Those of `listed` that stand beside the weights: config, tokenizer, template,
// defaults. In the order of their names.
std::vector<std::string> text_files_of(const std::set<std::string>& listed);

// The files that an index of weights names, each once. `origin` names it.
// Errors: kCorruption (not an index, or a file that leaves the folder).
Result<std::set<std::string>> shards_of_index(
    std::string_view json,
    const std::string& origin);

} // namespace ingle
