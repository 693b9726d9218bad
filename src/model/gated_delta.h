// A block that is a gated delta net, of recurrent layers. Yang et al., "Gated
// Delta Networks: Improving Mamba2 with Delta Rule" (2024);
// kernels/gated_delta.h says what it computes.
//
// Letters: T tokens of all rows together, D hidden size.
// Threads: as in ops.h, and it throws the same.
#pragma once

#include <memory>

#include "kernels/gated_delta.h"
#include "model/linear_views.h"
#include "model/ops.h"

namespace ingle {

struct GatedDeltaWeights {
  mx::array norm; // [D], before the projections
  Linear qkv; // D -> channels
  Linear z; // D -> value_width: the output's gates
  Linear b; // D -> value_heads: beta, before its sigmoid
  Linear a; // D -> value_heads: what decays
  Linear out; // value_width -> D
  mx::array conv; // [taps, channels]
  mx::array decay_rate; // [value_heads] in f32
  mx::array decay_bias; // [value_heads] in f32, of a
  mx::array head_norm; // [value_dim], of what a head reads
};

// x + out(gated(delta(norm(x)))), in MLX's own ops: [T, D]. Moves the state in
// layer `layer` of the rows' caches on by their tokens.
mx::array gated_delta_and_add(
    Step& step,
    const mx::array& x,
    const GatedDeltaWeights& weights,
    const GatedDeltaShape& shape,
    float eps,
    size_t layer);

// What the kernels see of it.
GatedDeltaView kernel_view(
    const GatedDeltaWeights& weights,
    const GatedDeltaShape& shape,
    float eps,
    LinearViews& views);

// The cache of a layer that it moves on. `dtype`: that of activations in
// MLX's own ops.
std::unique_ptr<KvCache> make_recurrent_cache(
    const GatedDeltaShape& shape,
    mx::Dtype dtype,
    bool for_kernels);

} // namespace ingle
