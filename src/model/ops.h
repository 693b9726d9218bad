// What model families are written in: ops as coarse as a fused CPU kernel needs
// them, and no coarser. Each is one call of the CPU kernels (kernel_ops.h), or
// a composition of MLX's own ops.
//
// Letters: T tokens of all rows together, D hidden size, H heads, L tokens of
//          one row, V vocabulary.
// Threads: the engine thread. Throws what MLX throws, and std::bad_alloc.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <mlx/array.h>

#include "model/cpu_kernels.h"
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

// [T, dims / 2] each.
struct RopeAngles {
  std::vector<float> cosines;
  std::vector<float> sines;
};

struct MlpWeights {
  mx::array norm; // [D]
  Linear gate; // D -> M
  Linear up; // D -> M
  Linear down; // M -> D
};

// What the ops of one step have in common.
class Step {
 public:
  // `kernels`: what computes, of uses_kernels(); null: MLX's own ops. Both
  // outlive the step's evaluation.
  Step(std::span<const Row> rows, CpuKernels* kernels)
      : rows_(rows), kernels_(kernels) {}

  std::span<const Row> rows() const {
    return rows_;
  }
  CpuKernels* kernels() const {
    return kernels_;
  }
  // Of all rows' tokens, one after the other.
  std::shared_ptr<const RopeAngles> angles(const Rope& rope);

 private:
  std::span<const Row> rows_;
  CpuKernels* kernels_;
  const Rope* rope_ = nullptr; // whose angles these are
  std::shared_ptr<const RopeAngles> angles_;
};

// The tokens of all rows, one after the other -> their embeddings [T, D].
mx::array embed(const Step& step, const Matrix& embedding);

// x + o(attention(norm(x))): [T, D]. Appends the rows' new keys and values to
// layer `layer` of their caches.
mx::array attend_and_add(
    Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer);

// x + down(silu(gate(n)) * up(n)), n = rms_norm(x): [T, D].
mx::array mlp_and_add(
    const Step& step,
    const mx::array& x,
    const MlpWeights& weights,
    float eps);

struct LayerWeights {
  AttentionWeights attention;
  MlpWeights mlp;
};

// mlp_and_add(attend_and_add(x)).
mx::array decoder_layer(
    Step& step,
    const mx::array& x,
    const LayerWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer);

// The tokens of x whose logits the rows want: all that the last layer's MLP and
// the head need. Nothing where there are none.
std::optional<mx::array> take_wanted(const Step& step, const mx::array& x);

// head(norm(x)): [T, V] in f32.
mx::array norm_and_head(
    const Step& step,
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps);

// The cache of a layer that these ops append to.
std::unique_ptr<KvCache> make_kv_cache(
    const AttentionShape& shape,
    mx::Dtype dtype,
    const CpuKernels* kernels);

} // namespace ingle
