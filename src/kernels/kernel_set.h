// The kernels of one instruction set, as a table of functions.
//
// All sets give the same bits: products are sums of integers, which no order
// changes, and what is left in f32 is done lane by lane in an order that does
// not depend on how many tokens, panels or threads there are.
//
// Letters: T tokens, K columns (inputs), N rows (outputs).
// Threads: any; functions touch only what they are given, and none throws.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/kv_layout.h"
#include "kernels/matrix.h"

namespace ingle {

// How the inputs of a product are held.
enum class Inputs : uint8_t {
  // f32: for dense matrices.
  kFloats,
  // Per token and 32 columns one scale and integers of 8 bits: x = s * v.
  kOnePlane,
  // The same with 15 bits: x = s * (128 * high + low).
  kTwoPlanes,
};

// The inputs of up to max_tile_tokens() tokens, interleaved so that a kernel
// reads them as one stream.
//   kFloats: values[K][T].
//   planes:  quads[K / 32][plane][8][T] of 4 columns each, the high plane
//            first; scales[K / 32][T]; sums[K / 32][T], of the 32 inputs as
//            they are held.
struct Tile {
  Inputs inputs = Inputs::kFloats;
  int tokens = 0;
  int columns = 0;
  float* values = nullptr;
  int32_t* quads = nullptr;
  float* scales = nullptr;
  float* sums = nullptr;
};

enum class Activation : uint8_t {
  kSilu,
  kGeluTanh,
  kGelu,
  // x * sigmoid(kSwigluSlope * x) of x up to kSwigluLimit; times 1 more than
  // what it gates, which is held to +-kSwigluLimit.
  kClampedSwiglu
};

inline constexpr float kSwigluLimit = 7;
inline constexpr float kSwigluSlope = 1.702f;

// What becomes of a product y = x * matrix^T + bias.
//   out[t * stride + n] = y                       (neither of the below)
//                         addend[t * stride + n] + y
//                         activation(y) * (x * up^T + up_bias), or what the
//                           activation has instead
struct Product {
  const PackedMatrix* matrix = nullptr;
  const float* bias = nullptr; // [N] or null
  const PackedMatrix* up = nullptr; // of matrix' shape and format, or null
  const float* up_bias = nullptr;
  Activation activation = Activation::kSilu;
  const float* addend = nullptr; // may be `out`
  float* out = nullptr; // of the tile's first token
  int64_t stride = 0;
};

// Queries of one KV head against one block of its positions.
struct BlockQuery {
  KvBlockShape shape; // of 16 bits
  const std::byte* block = nullptr;
  const std::byte* next = nullptr; // what is probably asked about then
  int rows = 0; // 1 to kMaxQueryRows
  // Per row: head_dim / 2 pairs of i16 (padded as the shape has it), their
  // scale (that of the scores and log2(e) in it), and which positions
  // [begin, end) of the block it sees; empty: none.
  const int32_t* const* queries = nullptr;
  const float* scales = nullptr;
  const int32_t* begins = nullptr;
  const int32_t* ends = nullptr;
  float soft_cap = 0; // in units of scores * log2(e); 0: none
};

inline constexpr int kMaxQueryRows = 8;
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kUnseen = -1e30f; // less than any score

// Softmax over a part of the positions: sum(exp2(s - max) * v) and its weight.
// `values` has padded_dim floats.
struct PartialAttention {
  float max = 0; // of the scores, in base 2
  float weight = 0; // sum(exp2(s - max)); 0: no position was seen
  float* values = nullptr;
};

// The delta rule over some tokens of one value head (gated_delta.h). S is in
// panels, [value_dim / kDeltaPanel][key_dim][kDeltaPanel].
struct DeltaRun {
  int tokens = 0; // at least one
  int key_dim = 0;
  int value_dim = 0;
  const float* queries = nullptr; // [tokens][key_dim], as the next
  const float* keys = nullptr;
  const float* values = nullptr; // [tokens][value_dim]
  const float* decays = nullptr; // [tokens], as the next
  const float* betas = nullptr;
  const float* before = nullptr; // S; may be `after`
  float* after = nullptr;
  float* out = nullptr; // of the first token: value_dim
  int64_t out_stride = 0;
};

// Of some tokens xA, and what they are multiplied with (low_rank.h).
struct LowRankSums {
  int tokens = 0;
  const float* values = nullptr; // of the first token: [rank]
  int64_t stride = 0; // from token to token
  const float* b = nullptr; // [rank][b_stride], from the first output on
  int64_t b_stride = 0;
  int rank = 0;
  float scale = 0;
  int64_t out_stride = 0;
};

inline constexpr int kDeltaPanel = 16;
inline constexpr int kMaxTaps = 16;

struct KernelSet {
  Isa isa = Isa::kPortable;
  int tile_tokens = 0; // how many tokens a tile holds at most, up to 8
  int panels = 0; // how many panels multiply() does best at a time
  int query_rows = 0; // how many rows attend_block() does best at a time

  // out = rms_norm(x) * weight; [K]. `out` may be x.
  void (*rms_norm)(
      const float* x,
      const float* weight,
      float eps,
      int columns,
      float* out);

  // out = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias; [K]. `out`
  // may be x.
  void (*layer_norm)(
      const float* x,
      const float* weight,
      const float* bias,
      float eps,
      int columns,
      float* out);

  // x: per token K floats. Fills tile.quads, scales and sums, or values.
  // Planes need K % 32 == 0.
  void (*pack_tile)(const float* const* x, const Tile& tile);

  // The rows of the panels [begin, end) for a tile's tokens. The tile's inputs
  // are kFloats iff the matrix is dense.
  void (
      *multiply)(const Product& product, int begin, int end, const Tile& tile);

  // gate = activation(gate) * up, or what the activation has instead; [n].
  // `up` may be null: activation(gate).
  void (*activate_gate)(
      float* gate,
      const float* up,
      Activation activation,
      int n);

  // x = cap * tanh(x / cap); [n].
  void (*soften)(float* x, int64_t n, float cap);

  // Rotates the first `dims` of a head. cosines, sines: [dims / 2].
  // Pairs are (i, i + dims / 2), or (2i, 2i + 1) where `traditional`.
  void (*rotate)(
      float* head,
      const float* cosines,
      const float* sines,
      int dims,
      bool traditional);

  // x: [head_dim] -> padded_dim / 2 pairs; gives their scale.
  float (
      *pack_query)(const float* x, const KvBlockShape& shape, int32_t* pairs);

  // Stores a key and a value: [head_dim] each. With 4 bits, two positions 2i
  // and 2i + 1 of a block are not for two threads at the same time.
  void (*put_kv)(
      const float* key,
      const float* value,
      const KvBlockShape& shape,
      int position, // in the block
      std::byte* block);

  // The tiles [begin, end) of a block of 8 or 4 bits as those of one of 16, of
  // shape.widened().
  void (*widen)(
      const std::byte* block,
      const KvBlockShape& shape,
      int begin,
      int end,
      std::byte* out);

  // Each row's attention over the block alone.
  void (*attend_block)(const BlockQuery& query, PartialAttention* results);

  // total += part, where both may be of no weight; n = padded_dim.
  void (*merge)(PartialAttention& total, const PartialAttention& part, int n);

  // out = values / weight; [n].
  void (*finish)(const PartialAttention& total, int n, float* out);

  // The largest of x[0..n), -inf where n is 0. `is_sound` is cleared by a NaN
  // and by +inf.
  float (*largest)(const float* x, int n, bool& is_sound);

  // sum(exp((x - peak) * rate)) over x >= floor: what is 87 below the peak, or
  // more, is 0. Requires: x <= peak, rate > 0.
  double (*exp_sum)(const float* x, int n, float peak, float rate, float floor);

  // The same at rate 1 for kFloors floors at once.
  void (*exp_sums)(
      const float* x,
      int n,
      float peak,
      const float* floors,
      double* sums);

  // Writes the indices of those in [low, high), in order, and gives their
  // number. `indices` has room for n + 15.
  int (*find_between)(
      const float* x,
      int n,
      float low,
      float high,
      int32_t* indices);

  // out[i] = silu(sum(weights[j * stride + i] * rows[j][i])), j < taps; [n].
  void (*convolve)(
      const float* const* rows,
      const float* weights,
      int64_t stride,
      int taps,
      int n,
      float* out);

  // x = length * x / sqrt(sum(x^2) + eps); [n].
  void (*scale_to_length)(float* x, int n, float eps, float length);

  void (*delta_rule)(const DeltaRun& run);

  // out = rms_norm(x) * weight * silu(gate); [n]. `out` may be x.
  void (*norm_and_gate)(
      const float* x,
      const float* weight,
      float eps,
      const float* gate,
      int n,
      float* out);

  // x = x * sigmoid(gate); [n].
  void (*gate_by_sigmoid)(float* x, const float* gate, int n);

  // sums[t][r] = sum(x[t][k] * a[r * columns + k]), k < columns.
  void (*low_rank_in)(
      const float* const* x,
      int tokens,
      const float* a,
      int rank,
      int columns,
      float* const* sums);

  // out[t * out_stride + i] += scale * sum(values[t * stride + r] *
  // b[r * b_stride + i]), i < n.
  void (*low_rank_out)(const LowRankSums& sums, int n, float* out);
};

inline constexpr int kFloors = 3;

// Requires: `isa` is one of supported_isas().
const KernelSet& kernel_set(Isa isa);

} // namespace ingle
