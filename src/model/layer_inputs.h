// What each layer gets of a token for itself; kernels/layer_inputs.h says what
// that is. And the block of a layer that takes it in.
//
// Letters: T tokens of all rows together, D hidden size, L layers, W the width
//          of what one of them gets.
// Threads: as in ops.h, and it throws the same.
#pragma once

#include "model/ops.h"

namespace ingle {

struct LayerInputWeights {
  Matrix table; // [V, L * W]
  Linear projection; // D -> L * W
  mx::array norm; // [W], of each layer's part of the projection
  float table_scale = 1;
  float projection_scale = 1; // before the norm
};

// Of all tokens, whose embeddings x has, as embed() gives them: [T, L * W].
mx::array layer_inputs(
    const Step& step,
    const mx::array& x,
    const LayerInputWeights& weights,
    float eps);

// x + norm(down(activation(gate(x)) * inputs)).
struct LayerInputBlock {
  MlpWeights mlp; // W wide, and without `up`
  size_t layer = 0; // whose part of the step's inputs it takes
};

// It, in MLX's own ops: [T, D].
mx::array layer_input_and_add(
    const Step& step,
    const mx::array& x,
    const LayerInputBlock& block,
    float eps);

} // namespace ingle
