// What a model of some config keeps of a sequence.
#pragma once

#include "cache/kv_state.h"
#include "model/config.h"
#include "model/kv_config.h"

namespace ingle {

// An empty state: a cache for each layer, of the kind that the layer calls for,
// but for those that attend to another's. As these come last, a layer's number
// is its cache's.
// `dtype`: of rows, where MLX's own ops compute and not the kernels.
KvState make_kv_state(
    const ModelConfig& config,
    const KvQuantizations& kv,
    mx::Dtype dtype,
    bool for_kernels);

} // namespace ingle
