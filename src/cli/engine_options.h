// How every command sets up its engine.
#pragma once

#include "base/status.h"
#include "cli/engine_flags.h"
#include "cli/environment.h"
#include "cli/progress_bar.h"
#include "engine/engine.h"

namespace ingle {

// `loading`, which outlives the engine, shows how far the weights are.
Result<EngineOptions> engine_options(
    const Environment& env,
    const EngineFlags& flags,
    ProgressBar& loading);

} // namespace ingle
