#include "model/make_kv_state.h"

#include "model/families/layer_weights.h"
#include "model/gated_delta.h"
#include "model/ops.h"

namespace ingle {

KvState make_kv_state(
    const ModelConfig& config,
    const KvQuantizations& kv,
    mx::Dtype dtype,
    bool for_kernels) {
  std::vector<std::unique_ptr<KvCache>> caches;
  for (size_t i = 0; i < config.cache_count(); ++i) {
    const LayerConfig& layer = config.layers[i];
    caches.push_back(
        layer.is_recurrent
            ? make_recurrent_cache(config.gated_delta, dtype, for_kernels)
            : make_kv_cache(
                  attention_shape(config, layer, kv[i]), dtype, for_kernels));
  }
  return KvState(std::move(caches));
}

} // namespace ingle
