// How every command sets up its engine.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/environment.h"
#include "cli/progress_bar.h"
#include "engine/engine.h"

namespace ingle {

// `model` as resolve_model() takes it; `loading`, which outlives the engine,
// shows how far the weights are.
Result<EngineOptions> engine_options(
    const Environment& env,
    const std::string& model,
    ProgressBar& loading);

} // namespace ingle
