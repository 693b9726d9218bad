#include "model/load_model.h"

#include "base/cores.h"
#include "model/blas_threads.h"
#include "model/config.h"
#include "model/families/decoder.h"
#include "model/run_mlx.h"
#include "model/weight_source.h"

namespace ingle {
namespace {

// Products of dense matrices are all that exact mode spends time on; beside
// kernels of our own the library's threads would be in their way. Null: MLX's
// own ops compute.
Result<std::unique_ptr<CpuKernels>> start_threads(
    const RunOptions& options,
    FileSystem& fs) {
  const int threads =
      options.threads > 0 ? options.threads : physical_cores(fs);
  set_blas_threads(options.numerics == Numerics::kExact ? threads : 1);
  if (!uses_kernels(options.numerics)) {
    return std::unique_ptr<CpuKernels>();
  }
  INGLE_ASSIGN_OR_RETURN(const Isa isa, choose_isa(options.isa));
  return run_mlx("start threads", [&] {
    return std::make_unique<CpuKernels>(isa, threads, options.numerics);
  });
}

} // namespace

Result<ModelConfig> read_model_config(
    FileSystem& fs,
    const std::string& folder) {
  const std::string path = join_path(folder, "config.json");
  INGLE_ASSIGN_OR_RETURN(const std::string json, fs.read(path));
  return parse_model_config(json, path);
}

Result<std::unique_ptr<const Model>> load_model(
    FileSystem& fs,
    const std::string& folder,
    const ModelConfig& config,
    RunOptions options,
    std::stop_token stop,
    std::function<void(uint64_t done, uint64_t total)> on_progress) {
  INGLE_ASSIGN_OR_RETURN(auto kernels, start_threads(options, fs));
  INGLE_ASSIGN_OR_RETURN(
      const KvQuantizations kv, kv_quantizations(fs, folder, config, options));
  INGLE_ASSIGN_OR_RETURN(const auto files, WeightFolder::open(fs, folder));
  WeightSource weights(
      *files,
      folder,
      config.quantization,
      options.numerics,
      std::move(stop),
      std::move(on_progress),
      kernels ? &kernels->arena() : nullptr);
  INGLE_ASSIGN_OR_RETURN(
      auto model, load_decoder(config, kv, weights, std::move(kernels)));
  INGLE_RETURN_IF_ERROR(weights.check_all_used());
  return model;
}

Result<std::unique_ptr<const Model>> load_model(
    FileSystem& fs,
    const std::string& folder,
    RunOptions options,
    std::stop_token stop) {
  INGLE_ASSIGN_OR_RETURN(
      const ModelConfig config, read_model_config(fs, folder));
  return load_model(
      fs, folder, config, std::move(options), std::move(stop), {});
}

Result<std::set<std::string>> check_weights(
    const ModelConfig& config,
    const KvQuantizations& kv,
    const WeightFolder& files,
    const std::string& folder) {
  WeightSource weights(files, folder, config.quantization, Numerics::kExact);
  weights.only_check();
  INGLE_RETURN_IF_ERROR(load_decoder(config, kv, weights, nullptr).status());
  INGLE_RETURN_IF_ERROR(weights.check_all_used());
  return weights.dropped();
}

} // namespace ingle
