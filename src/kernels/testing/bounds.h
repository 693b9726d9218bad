// How far the kernels may be from exact results. Between instruction sets there
// is no bound: all give the portable ones' bits.
#pragma once

#include "kernels/kernel_set.h"

namespace ingle {

// Of a product, relative to the sum of its terms' magnitudes: the inputs'
// rounding to 15 or 7 bits, and f32's.
inline double product_bound(Inputs inputs) {
  switch (inputs) {
    case Inputs::kFloats:
      return 1e-5;
    case Inputs::kOnePlane:
      return 8e-3;
    case Inputs::kTwoPlanes:
      break;
  }
  return 5e-5;
}

// Of what is attended to, over normally distributed queries, keys and values.
inline double attention_bound(int kv_bits) {
  return kv_bits == 16 ? 3e-4 : kv_bits == 8 ? 5e-3 : 0.1;
}

// Of a layer with two planes or floats, as root mean squares, relative to what
// comes out.
inline double attention_layer_bound(int kv_bits) {
  return kv_bits == 16 ? 2e-3 : kv_bits == 8 ? 2e-2 : 0.25;
}
inline constexpr double kMlpLayerBound = 2e-4;
// The weights of experts come out of an exponential.
inline constexpr double kMoeLayerBound = 6e-4;
inline constexpr double kGatedDeltaLayerBound = 1e-3;

} // namespace ingle
