// A cache whose rows are values of MLX's.
#pragma once

#include <mlx/dtype.h>

#include "cache/kv_cache.h"

namespace ingle {

// What one layer's cache has to hold.
struct KvLayerShape {
  int kv_heads = 0;
  int head_dim = 0;
  mx::Dtype dtype = mx::float32;
};

// All rows that a query of the pending step attends to, its own included.
// keys, values: [1, kv_heads, positions, head_dim].
struct KvView {
  mx::array keys;
  mx::array values;
};

class ArrayKvCache : public KvCache {
 public:
  // Adds rows to the pending step. keys, values: [1, kv_heads, L, head_dim] in
  // the layer's dtype, L >= 1. Several appends in one step follow each other.
  // Throws what MLX throws; call it inside run_mlx().
  virtual KvView append(const mx::array& keys, const mx::array& values) = 0;

  // Nobody may read the arrays of a failed step, nor what they were made of.
  bool roll_back() final {
    return false;
  }
};

} // namespace ingle
