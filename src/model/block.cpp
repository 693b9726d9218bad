#include "model/block.h"

#include "model/kernel_ops.h"

namespace ingle {
namespace {

// A block in MLX's own ops.
struct RunBlock {
  Step& step;
  const mx::array& x;
  float eps;

  mx::array operator()(const AttentionBlock& block) const {
    return attend_and_add(
        step, x, block.weights, block.shape, block.rope, eps, block.layer);
  }
  mx::array operator()(const GatedDeltaBlock& block) const {
    return gated_delta_and_add(
        step, x, block.weights, block.shape, eps, block.layer);
  }
  mx::array operator()(const LayerInputBlock& block) const {
    return layer_input_and_add(step, x, block, eps);
  }
  mx::array operator()(const MlpWeights& weights) const {
    return mlp_and_add(step, x, weights, eps);
  }
  mx::array operator()(const MoeWeights& weights) const {
    return moe_and_add(step, x, weights, eps);
  }
};

// Of the kinds of blocks.
struct VisitLinears {
  const std::function<void(const Linear&)>& visit;

  void operator()(const AttentionBlock& block) const {
    visit(block.weights.q);
    visit_if(block.weights.k);
    visit_if(block.weights.v);
    visit(block.weights.o);
  }
  void operator()(const GatedDeltaBlock& block) const {
    const GatedDeltaWeights& weights = block.weights;
    for (const Linear* linear :
         {&weights.qkv, &weights.z, &weights.b, &weights.a, &weights.out}) {
      visit(*linear);
    }
  }
  void operator()(const LayerInputBlock& block) const {
    (*this)(block.mlp);
  }
  void operator()(const MlpWeights& weights) const {
    visit(weights.gate);
    visit_if(weights.up);
    visit(weights.down);
  }
  void operator()(const MoeWeights& weights) const {
    if (weights.beside) {
      (*this)(*weights.beside);
    }
  }

 private:
  void visit_if(const std::optional<Linear>& linear) const {
    if (linear) {
      visit(*linear);
    }
  }
};

} // namespace

void for_each_adaptable(
    const Block& block,
    const std::function<void(const Linear&)>& visit) {
  std::visit(VisitLinears{visit}, block);
}

mx::array run_blocks(
    Step& step,
    const mx::array& x,
    std::span<const Block> blocks,
    float eps) {
  if (step.kernels() != nullptr && !blocks.empty()) {
    return kernel_run_blocks(step, x, blocks, eps);
  }
  mx::array out = x;
  for (const Block& block : blocks) {
    out = std::visit(RunBlock{step, out, eps}, block);
  }
  return out;
}

} // namespace ingle
