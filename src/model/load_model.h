// A model folder -> a Model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "model/kv_config.h"
#include "model/model.h"
#include "model/run_options.h"
#include "weights/safetensors_reader.h"

namespace ingle {

// Of the folder's config.json.
// Errors:  as parse_model_config(); kNotFound, kIo.
Result<ModelConfig> read_model_config(
    FileSystem& fs,
    const std::string& folder);

// Reads the weights in `folder`, whose config this is, and accounts for every
// tensor. The files are not needed afterwards. `on_progress` is told,
// on this thread, of how many bytes of weights are loaded.
//
// Threads: the thread that will run the model: MLX arrays stay with the thread
//          that made them. The number of threads that compute holds for the
//          whole process.
// Errors:  kNotFound, kIo, kCorruption, kUnsupported; one line that names the
//          file and the cause. kCancelled soon after `stop` is requested.
Result<std::unique_ptr<const Model>> load_model(
    FileSystem& fs,
    const std::string& folder,
    const ModelConfig& config,
    RunOptions options,
    std::stop_token stop = {},
    std::function<void(uint64_t done, uint64_t total)> on_progress = {});

// The same of the config that is there.
Result<std::unique_ptr<const Model>> load_model(
    FileSystem& fs,
    const std::string& folder,
    RunOptions options,
    std::stop_token stop = {});

// Whether the weights have the names, types and shapes that the config asks
// for, from their headers alone. Gives the names of those that the model does
// not need.
// Errors:  as load_model().
Result<std::set<std::string>> check_weights(
    const ModelConfig& config,
    const KvQuantizations& kv,
    const WeightFolder& files,
    const std::string& folder);

} // namespace ingle
