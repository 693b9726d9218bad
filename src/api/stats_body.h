// The body of GET /stats.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "engine/engine_stats.h"
#include "engine/served_model.h"

namespace ingle {

// `model`: null while there is none. `started`: since the epoch.
std::string stats_body(
    std::string_view version,
    std::chrono::seconds started,
    const ServedModel* model,
    const EngineStats& stats);

} // namespace ingle
