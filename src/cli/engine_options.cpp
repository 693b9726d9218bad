#include "cli/engine_options.h"

#include "cli/model_argument.h"

namespace ingle {

Result<EngineOptions> engine_options(
    const Environment& env,
    const std::string& model,
    ProgressBar& loading) {
  EngineOptions options;
  INGLE_ASSIGN_OR_RETURN(options.model_folder, resolve_model(env, model));
  options.numerics = default_numerics();
  options.on_load_progress = loading.callback();
  return options;
}

} // namespace ingle
