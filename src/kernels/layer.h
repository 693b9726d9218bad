// What a decoder layer is made of, over all tokens of a step at once: each
// function is one region of the pool or a few with barriers in between.
//
// A token's results are the same bits whatever tokens are beside it, however
// a prompt is cut into steps, and for any number of threads.
//
// Letters: T tokens of all rows together, D hidden size, M inner size, V
//          vocabulary. Matrices are row-major f32 [T, width].
// Threads: the one that owns the pool. Throw std::bad_alloc, before anything
//          is computed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention_scratch.h"
#include "kernels/kernel_set.h"
#include "kernels/low_rank.h"
#include "kernels/thread_pool.h"

namespace ingle {

struct LinearView {
  const PackedMatrix* matrix = nullptr; // [out, in]
  const float* bias = nullptr; // [out] or null
  // What adapters add, of some of the step's tokens: runs one after the other.
  // Of blocks of attention, MLPs and gated delta nets, not of experts.
  std::span<const LowRankRun> adapters{};
};

struct NormView {
  const float* weight = nullptr; // [D]; of queries or keys: of their width
  float eps = 0;
  const float* bias = nullptr; // [D]: a layer norm; null: an RMS norm
};

// The kernels, the threads, and the memory that they work in; reused from step
// to step. It keeps the largest step's buffers.
struct KernelContext {
  const KernelSet& set;
  ThreadPool& pool;
  Inputs planes; // how inputs of quantised products are held

  // Grown before a region, never in one.
  PageBuffer tiles{}; // of all threads together
  std::vector<PageBuffer> own{}; // of each thread: its tiles and rows
  PageBuffer projected{}; // [T, queries, keys and values], or [T, M]
  PageBuffer attended{}; // [T, heads * head_dim]
  PageBuffer middle{}; // [T, D], between attention and MLP
  PageBuffer
      branch{}; // [T, D], what is to be normed or scaled before it is added
  AttentionScratch attention{};
  // Of each thread: what the delta rule sees of some tokens (gated_delta.h).
  PageBuffer delta{};
  // [T, D] and [T, experts], what a router sees and says (moe.h).
  PageBuffer routed{};
};

// Rows of the table times `scale`, in f32: [T, D].
void embed(
    KernelContext& context,
    const PackedMatrix& table,
    std::span<const int32_t> ids,
    float scale,
    float* out);

// What becomes of x and what a part of a layer makes of it, y:
// total * (x + scale * norm(y)), without a norm total * (x + scale * y).
struct ResidualView {
  NormView norm{}; // weight null: none
  float scale = 1;
  float total = 1;

  bool is_plain() const {
    return norm.weight == nullptr && scale == 1 && total == 1;
  }
};

// One sequence's tokens in a step.
struct AttentionRow {
  int tokens = 0; // at least one
  int64_t position = 0; // of the first of them
  // The layer's blocks [position / 256 - first_block][kv_heads], with room for
  // the tokens; no other row of the step has the same.
  std::byte* blocks = nullptr;
  int64_t first_block = 0; // at most that of the first position seen
};

struct AttentionView {
  NormView norm; // weight null: none
  LinearView q;
  // Matrix null: the keys and values of the tokens are in the blocks already,
  // another layer's, and there is no v.
  LinearView k;
  // Matrix null: values are what k gives. Not with norms_all_heads.
  LinearView v;
  LinearView o;
  // Of each head of queries and keys, or of all together, before they are
  // rotated; weight null: none.
  NormView q_norm{};
  NormView k_norm{};
  bool norms_all_heads = false;
  NormView v_norm{}; // of each head of values; weight null: none
  // q gives each head's query and then, as wide, its gate: what the head
  // attends to is multiplied by the gate's sigmoid. Not with norms_all_heads.
  bool has_gates = false;
  // Of each head a score more, as if of a position whose value is 0: [heads];
  // null: none. Not scaled, nor capped.
  const float* sinks = nullptr;
  ResidualView residual{};
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int kv_bits = 16; // of keys and values: 16, 8 or 4
  int kv_group_size = 64; // of 8 or 4 bits
  float scale = 0; // of the scores
  float soft_cap = 0; // of the scores; 0: none
  int window = 0; // positions seen, its own included; 0: all
  int rope_dims = 0;
  bool traditional_rope = false;
  const float* cosines = nullptr; // [T, rope_dims / 2]
  const float* sines = nullptr;
  const float* query_scales = nullptr; // [T], of turned queries; null: 1
};

// x and o(attention(norm(x))), by its residual: [T, D]. Stores the tokens' keys
// and values, where the layer has its own. `out` may be x, here and below.
void attend_and_add(
    KernelContext& context,
    const AttentionView& view,
    std::span<const AttentionRow> rows,
    const float* x,
    float* out);

struct MlpView {
  NormView norm; // weight null: none
  LinearView gate;
  LinearView up{}; // matrix null: none
  LinearView down;
  Activation activation = Activation::kSilu;
  ResidualView residual{};
  // In place of what `up` gives: token t's [M] at t * factors_stride. Null:
  // none.
  const float* factors = nullptr;
  int64_t factors_stride = 0;
};

// x and down(activation(gate(n)) * up(n)), n = norm(x), by its residual;
// without `up` and factors down(activation(gate(n))): [T, D].
void mlp_and_add(
    KernelContext& context,
    const MlpView& view,
    int tokens,
    const float* x,
    float* out);

// What mlp_and_add() adds to x, by itself.
void mlp(
    KernelContext& context,
    const MlpView& view,
    int tokens,
    const float* x,
    float* out);

// Both, one after the other. Their views and rows see the same tokens.
void decoder_layer(
    KernelContext& context,
    const AttentionView& attention,
    const MlpView& mlp,
    std::span<const AttentionRow> rows,
    const float* x,
    float* out);

// head(norm(x)): [T, V], capped where soft_cap is not 0. With two planes, also
// where the layers have one: no later layer evens out what a rounded input does
// to a logit.
void norm_and_head(
    KernelContext& context,
    const NormView& norm,
    const LinearView& head,
    float soft_cap,
    int tokens,
    const float* x,
    float* out);

} // namespace ingle
