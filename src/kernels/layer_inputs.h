// What each layer gets of a token beside what the layer before it gives: a
// part of the token's row in a table of its own, and one of a projection of its
// embedding. After "Gemma 3n" (2025).
//
// Letters: T tokens of all rows together, D hidden size, L layers, W the width
//          of what one of them gets.
// Threads: as in layer.h. Throws std::bad_alloc, before anything is computed.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/layer.h"

namespace ingle {

struct LayerInputsView {
  const PackedMatrix* table = nullptr; // [V, L * W]
  LinearView projection; // [L * W, D]
  NormView norm; // [W], of each layer's part of the projection; not null
  int width = 0;
  float table_scale = 1;
  float projection_scale = 1; // before the norm
};

// (norm(projection(x)) + table[id]) / sqrt(2), both times their scales:
// [T, L * W]. x: the tokens' embeddings, [T, D].
void layer_inputs(
    KernelContext& context,
    const LayerInputsView& view,
    std::span<const int32_t> ids,
    const float* x,
    float* out);

} // namespace ingle
