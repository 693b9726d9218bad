// What model families are written in: ops as coarse as a fused CPU kernel needs
// them, and no coarser. Here they are compositions of MLX's own ops; the CPU
// kernels will take their place behind the same calls.
//
// Letters: T tokens of all rows together, D hidden size, H heads, L tokens of
//          one row, V vocabulary.
// Threads: the engine thread. Throws what MLX throws.
#pragma once

#include <span>

#include <mlx/array.h>

#include "model/linear.h"
#include "model/model.h"
#include "model/rope.h"

namespace ingle {

struct AttentionWeights {
  mx::array norm; // [D], before the projections
  Linear q; // D -> heads * head_dim
  Linear k; // D -> kv_heads * head_dim
  Linear v;
  Linear o; // heads * head_dim -> D
};

struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0; // of the scores
};

struct MlpWeights {
  mx::array norm; // [D]
  Linear gate; // D -> M
  Linear up; // D -> M
  Linear down; // M -> D
};

// The tokens of all rows, one after the other -> their embeddings [T, D].
mx::array embed(std::span<const Row> rows, const Matrix& embedding);

// x: [T, D] -> what each token attends to: [T, heads * head_dim]. Appends the
// rows' new keys and values to layer `layer` of their caches.
mx::array norm_qkv_rope_append_attend(
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer,
    std::span<const Row> rows);

// x + o(attended): [T, D].
mx::array out_proj_residual(
    const mx::array& x,
    const mx::array& attended,
    const Linear& o);

// x + down(silu(gate(n)) * up(n)), n = rms_norm(x): [T, D].
mx::array
norm_mlp_residual(const mx::array& x, const MlpWeights& weights, float eps);

// The positions whose logits the rows want -> [positions, V] in f32; nothing
// where there are none.
std::optional<mx::array> norm_head(
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps,
    std::span<const Row> rows);

} // namespace ingle
