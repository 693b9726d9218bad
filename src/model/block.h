// What a decoder is a list of: blocks, each of which adds something to what it
// gets. A layer is two of them or more.
//
// Letters, threads and what is thrown: as in ops.h.
#pragma once

#include <cstddef>
#include <functional>
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

// What later tokens look back on is made here.
inline bool moves_caches_on(const Block& block) {
  const auto* attention = std::get_if<AttentionBlock>(&block);
  return attention != nullptr ? attention->weights.k.has_value()
                              : std::holds_alternative<GatedDeltaBlock>(block);
}

// Calls `visit` with each of the block's linears that adapters may add to:
// those of attention, of gated delta nets and of MLPs, not of experts.
void for_each_adaptable(
    const Block& block,
    const std::function<void(const Linear&)>& visit);

// One block after the other: [T, D]. On the kernels all are one evaluation:
// what is prepared for each by itself takes a percent of a step of one token;
// and a token's results are the same bits whatever tokens are beside it and
// however a prompt is cut. `blocks` outlive the step's evaluation.
mx::array run_blocks(
    Step& step,
    const mx::array& x,
    std::span<const Block> blocks,
    float eps);

} // namespace ingle
