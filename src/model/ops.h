// What model families are written in, beside blocks (block.h): each op is one
// call of the CPU kernels (kernel_ops.h), or a composition of MLX's own ops.
// What blocks are of MLX's own ops stands here, too.
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

#include "model/attention.h"
#include "model/cpu_kernels.h"
#include "model/linear.h"
#include "model/model.h"
#include "model/rope.h"

namespace ingle {

// What a part of a layer, which computes y, makes of its input x:
// total * (x + scale * norm(y)), without a norm total * (x + scale * y).
struct Residual {
  std::optional<mx::array> norm{}; // [D]
  float scale = 1;
  float total = 1;
};

struct AttentionWeights {
  std::optional<mx::array> norm; // [D], before the projections
  Linear q; // D -> heads * head_dim; with gates twice that
  // D -> kv_heads * head_dim. None: the layer whose cache it attends to makes
  // the keys and values, in the same step and before it; and there is no v.
  std::optional<Linear> k;
  // None: values are what k gives, before it is normed. Not with norms of all
  // heads together.
  std::optional<Linear> v;
  Linear o; // heads * head_dim -> D
  // Of queries and keys before they are rotated: [head_dim], of each head, or
  // of all heads together.
  std::optional<mx::array> q_norm{};
  std::optional<mx::array> k_norm{};
  Residual residual{};
  // q gives each head's query and then, as wide, its gate: what the head
  // attends to is multiplied by the gate's sigmoid. Not with a norm of all
  // heads together.
  bool has_gates = false;
  std::optional<mx::array> norm_bias{}; // [D]: a layer norm; none: an RMS norm
  // Of each head a score more, as if of a position whose value is 0: [heads].
  std::optional<mx::array> sinks{};
  std::optional<mx::array> v_norm{}; // [head_dim], of each head of values
};

struct RopeAngles {
  std::vector<float> cosines; // [T, dims / 2]
  std::vector<float> sines;
  std::vector<float> query_scales; // [T]; empty: all are 1
};

struct MlpWeights {
  std::optional<mx::array> norm; // [D]
  Linear gate; // D -> M
  std::optional<Linear> up; // D -> M
  Linear down; // M -> D
  Activation activation = Activation::kSilu;
  Residual residual{};
  std::optional<mx::array> norm_bias{}; // as that of attention
};

// With MLX's ops: activation(gate) * up, or what the activation has instead;
// without `up` activation(gate).
mx::array pass_gate(
    Activation activation,
    const mx::array& gate,
    const std::optional<mx::array>& up);

// Tokens of a step, one after the other, that have the same adapters.
struct AdapterRun {
  int first = 0;
  int tokens = 0;
  const AdapterSet* adapters = nullptr; // not null
};

// What the ops of one step have in common.
class Step {
 public:
  // `kernels`: what computes, of uses_kernels(); null: MLX's own ops. Both, and
  // what the rows have, outlive the step's evaluation.
  Step(std::span<const Row> rows, CpuKernels* kernels);
  Step(Step&&) = default;
  Step& operator=(Step&&) = default;

  // Of the tokens whose logits the rows want, which take_wanted() takes, after
  // this step's have been appended to all caches.
  Step wanted() const;

  std::span<const Row> rows() const {
    return rows_;
  }
  CpuKernels* kernels() const {
    return kernels_;
  }
  // Of the tokens that have adapters.
  std::span<const AdapterRun> adapter_runs() const {
    return adapter_runs_;
  }
  // Of all rows' tokens, one after the other; null: none.
  std::shared_ptr<const RopeAngles> angles(const Rope* rope);

  // What its blocks take of layer_inputs.h: of the tokens that they compute.
  void set_layer_inputs(std::optional<mx::array> inputs) {
    layer_inputs_ = std::move(inputs);
  }
  const std::optional<mx::array>& layer_inputs() const {
    return layer_inputs_;
  }

 private:
  std::span<const Row> rows_;
  CpuKernels* kernels_;
  // Of wanted(): what `rows_` are, and how many tokens of each come before.
  std::vector<Row> wanted_;
  std::vector<int64_t> skipped_;
  // Those that were asked for.
  std::vector<std::pair<const Rope*, std::shared_ptr<const RopeAngles>>>
      angles_;
  std::optional<mx::array> layer_inputs_;
  std::vector<AdapterRun> adapter_runs_;
};

// x: [T, in] -> linear(x), with what the rows' adapters add, in MLX's own ops:
// [T, out].
mx::array apply(const Step& step, const Linear& linear, const mx::array& x);

// The tokens of all rows, one after the other.
std::vector<TokenId> token_ids(const Step& step);

// The tokens of all rows, one after the other -> their embeddings times
// `scale`: [T, D].
mx::array embed(const Step& step, const Matrix& embedding, float scale = 1);

// x + o(attention(norm(x))), with what the weights have more, in MLX's own ops:
// [T, D]. Appends the rows' new keys and values to layer `layer` of their
// caches, where the weights make any. `rope` may be null: no positions.
mx::array attend_and_add(
    Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope* rope,
    float eps,
    size_t layer);

// x + down(activation(gate(n)) * up(n)), n = norm(x), with what the weights
// have more; without `up` x + down(activation(gate(n))). `factors`, if any, are
// in the place of what `up` gives: [T, M]. In MLX's own ops: [T, D].
mx::array mlp_and_add(
    const Step& step,
    const mx::array& x,
    const MlpWeights& weights,
    float eps,
    const std::optional<mx::array>& factors = std::nullopt);

// What that adds to x, by itself.
mx::array mlp(
    const Step& step,
    const mx::array& x,
    const MlpWeights& weights,
    float eps,
    const std::optional<mx::array>& factors = std::nullopt);

// What becomes of x and of what a part of a layer makes of it.
mx::array add_residual(
    const mx::array& x,
    const mx::array& y,
    const Residual& residual,
    float eps);

// The tokens of x whose logits the rows want: all that the last layer's MLP and
// the head need. Nothing where there are none.
std::optional<mx::array> take_wanted(const Step& step, const mx::array& x);

// head(norm(x)): [T, V] in f32; capped with cap * tanh(logit / cap) where
// soft_cap is not 0. `norm_bias`: a layer norm's, or null.
mx::array norm_and_head(
    const Step& step,
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps,
    float soft_cap = 0,
    const mx::array* norm_bias = nullptr);

// The cache of a layer that attention appends to.
std::unique_ptr<KvCache>
make_kv_cache(const AttentionShape& shape, mx::Dtype dtype, bool for_kernels);

} // namespace ingle
