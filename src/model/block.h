// What a decoder is a list of: blocks, each of which adds something to what it
// gets. A layer is two of them or more.
//
// Letters, threads and what is thrown: as in ops.h.
#pragma once

#include <cstddef>
#include <span>
#include <variant>

#include "model/gated_delta.h"
#include "model/layer_inputs.h"
#include "model/moe.h"
#include "model/ops.h"

namespace ingle {

struct AttentionBlock {
  AttentionWeights weights;
  AttentionShape shape;
  const Rope* rope = nullptr; // null: no positions
  size_t layer = 0; // whose cache it appends or, without keys, attends to
};

struct GatedDeltaBlock {
  GatedDeltaWeights weights;
  GatedDeltaShape shape;
  size_t layer = 0; // whose cache it moves on
};

using Block = std::variant<
    AttentionBlock,
    GatedDeltaBlock,
    LayerInputBlock,
    MlpWeights,
    MoeWeights>;

// What has a cache.
inline bool looks_back(const Block& block) {
  return std::holds_alternative<AttentionBlock>(block) ||
      std::holds_alternative<GatedDeltaBlock>(block);
}

// One block after the other: [T, D]. Those that look back move the rows' caches
// on. On the kernels all are one evaluation: what is prepared for each by
// itself takes a percent of a step of one token; and a token's results are the
// same bits whatever tokens are beside it and however a prompt is cut. `blocks`
// outlive the step's evaluation.
mx::array run_blocks(
    Step& step,
    const mx::array& x,
    std::span<const Block> blocks,
    float eps);

} // namespace ingle
