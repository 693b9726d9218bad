// Attention of one sequence's queries in MLX's own ops, over what a cache
// holds. The kernels have their own (kernels/layer.h).
//
// Letters: H heads, L queries, D head size, S positions that the cache holds.
// Threads: the engine thread. Throws what MLX throws.
#pragma once

#include <optional>

#include <mlx/array.h>

#include "cache/array_kv_cache.h"

namespace ingle {

struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0; // of the scores
  float soft_cap = 0; // of the scores: cap * tanh(score / cap); 0: none
  int window = 0; // positions seen, the token's own included; 0: all
  std::optional<KvQuantization> kv{}; // how the cache holds them; none: in full
};

// bool [L, S]: true where the query at `offset` + i sees the position
// `begin` + j.
mx::array
attention_mask(int64_t offset, int length, int64_t begin, int keys, int window);

// queries: [1, H, L, D], the first at `offset`, whose keys are the last L of
// kv. Gives [1, H, L, D]. `sinks`: of each head a score more, as if of a
// position whose value is 0: [H].
mx::array attend(
    const mx::array& queries,
    const KvView& kv,
    const AttentionShape& shape,
    int64_t offset,
    const std::optional<mx::array>& sinks = std::nullopt);

// The same over quantised keys and values, in tiles of `tile` positions with a
// running softmax: no more than [H, L, tile] scores are there at once.
// Requires: shape.kv; no window, no soft cap.
mx::array attend_in_tiles(
    const mx::array& queries,
    const KvView& kv,
    const AttentionShape& shape,
    int64_t offset,
    int tile,
    const std::optional<mx::array>& sinks = std::nullopt);

// cap * tanh(x / cap).
mx::array soften(const mx::array& x, float cap);

} // namespace ingle
