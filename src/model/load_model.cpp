#include "model/load_model.h"

#include "model/config.h"
#include "model/families/llama.h"
#include "model/weight_source.h"
#include "weights/safetensors_reader.h"

namespace ingle {

Result<std::unique_ptr<const Model>> load_model(
    FileSystem& fs,
    const std::string& folder,
    Numerics numerics,
    std::stop_token stop,
    std::function<void(uint64_t done, uint64_t total)> on_progress) {
  const std::string config_path = join_path(folder, "config.json");
  INGLE_ASSIGN_OR_RETURN(const std::string json, fs.read(config_path));
  INGLE_ASSIGN_OR_RETURN(
      const ModelConfig config, parse_model_config(json, config_path));
  INGLE_ASSIGN_OR_RETURN(const auto files, WeightFolder::open(fs, folder));
  WeightSource weights(
      *files,
      folder,
      config.quantization,
      numerics,
      std::move(stop),
      std::move(on_progress));
  INGLE_ASSIGN_OR_RETURN(auto model, load_llama(config, weights));
  INGLE_RETURN_IF_ERROR(weights.check_all_used());
  return model;
}

} // namespace ingle
