// The first half of a recurrent layer: a gated delta net. Yang et al., "Gated
// Delta Networks: Improving Mamba2 with Delta Rule" (2024).
//
// Each value head has a matrix S that a token changes and reads:
//   S = decay * S;  S += beta * (v - S k) kᵀ;  y = S q
// q, k and v come out of a short convolution over the last `taps` tokens; q and
// k are scaled to a length of key_dim^-0.5 and of 1.
//
// A token's results are the same bits whatever tokens are beside it, however a
// prompt is cut into steps, and for any number of threads: each token is a step
// of its own, and each row of S is summed up by itself.
//
// Letters: T tokens of all rows together, D hidden size.
// Threads: as in layer.h. Throws std::bad_alloc, before anything is computed.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/layer.h"

namespace ingle {

// Added to the sum of a query's or a key's squares before it is divided by its
// root, as mlx-lm and the published code do; to their mean it would be more.
inline constexpr float kGatedDeltaUnitEps = 1e-6f;

struct GatedDeltaShape {
  int key_heads = 0;
  int value_heads = 0; // a multiple of key_heads
  int key_dim = 0; // of a head, as the next
  int value_dim = 0;
  int taps = 0; // of the convolution, 2 to kMaxTaps

  int key_width() const {
    return key_heads * key_dim;
  }
  int value_width() const {
    return value_heads * value_dim;
  }
  // Queries, keys and values, one after the other.
  int channels() const {
    return 2 * key_width() + value_width();
  }
  // Of one sequence's state: what was before the convolution of its last
  // taps - 1 tokens, [taps - 1][channels]; from heads_offset() on, each value
  // head's S in panels of kDeltaPanel of its rows (missing ones 0),
  // [value_heads][panel][key_dim][kDeltaPanel]. All in f32.
  size_t heads_offset() const;
  size_t head_floats() const;
  size_t state_bytes() const;

  bool operator==(const GatedDeltaShape&) const = default;
};

// One sequence's tokens in a step.
struct GatedDeltaRow {
  int tokens = 0; // at least one
  const std::byte* before = nullptr; // its state, at a multiple of 64
  std::byte* after = nullptr; // may be `before`; no other row's
};

struct GatedDeltaView {
  NormView norm; // before the projections
  LinearView qkv; // D -> channels
  LinearView z; // D -> value_width: the output's gates
  LinearView b; // D -> value_heads: beta, before its sigmoid
  LinearView a; // D -> value_heads: what decays
  LinearView out; // value_width -> D
  const float* conv = nullptr; // [taps][channels]
  const float* decay_rate = nullptr; // [value_heads]
  const float* decay_bias = nullptr; // [value_heads], of a
  NormView head_norm; // of what a head reads: [value_dim]
  GatedDeltaShape shape{};
};

// x + out(gated(delta(norm(x)))): [T, D]. Leaves the rows' states after their
// tokens. `out` may be x.
void gated_delta_and_add(
    KernelContext& context,
    const GatedDeltaView& view,
    std::span<const GatedDeltaRow> rows,
    const float* x,
    float* out);

} // namespace ingle
