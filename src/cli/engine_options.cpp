#include "cli/engine_options.h"

#include "cli/model_argument.h"

namespace ingle {

Result<EngineOptions> engine_options(
    const Environment& env,
    const EngineFlags& flags,
    ProgressBar& loading) {
  EngineOptions options;
  INGLE_ASSIGN_OR_RETURN(auto place, resolve_model(env, flags.model));
  options.model_folder = std::move(place.folder);
  options.model_name = std::move(place.name);
  options.run = flags.run_options(env);
  options.usable_memory = flags.usable_memory();
  options.adapters = {{adapters_folder(env)}, flags.mounted_adapters()};
  options.on_load_progress = loading.callback();
  return options;
}

} // namespace ingle
