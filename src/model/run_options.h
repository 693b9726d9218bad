// How a model is to be run.
#pragma once

#include <string>

#include "cache/kv_cache.h"
#include "model/numerics.h"

namespace ingle {

// Who says how keys and values are held.
enum class KvQuant {
  kConfig, // the model's kv_config.json, where there is one
  kOff, // in full
  kUniform, // all layers that have any, as RunOptions::kv
};

struct RunOptions {
  Numerics numerics = Numerics::kExact;
  int threads = 0; // that compute; 0: one for each physical core
  std::string isa{}; // of the CPU kernels, as choose_isa() takes it
  KvQuant kv_quant = KvQuant::kConfig;
  KvQuantization kv{}; // kUniform
};

} // namespace ingle
