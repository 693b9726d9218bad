// How the layers of a model hold keys and values in fewer bits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "cache/kv_cache.h"
#include "model/config.h"
#include "model/run_options.h"

namespace ingle {

// By layer; nothing: in full.
using KvQuantizations = std::vector<std::optional<KvQuantization>>;

// As the options say, and where these leave it to the model, as the
// kv_config.json in `folder` does: a list of {"layer_idx", "bits",
// "group_size"}. Layers that it doesn't list, and all where there is no such
// file, are held in full.
// Errors: kCorruption (the file), kUnsupported (the layer's heads can't be cut
//         like that); one line that names the file or the flag, and the cause.
Result<KvQuantizations> kv_quantizations(
    FileSystem& fs,
    const std::string& folder,
    const ModelConfig& config,
    const RunOptions& options);

} // namespace ingle
