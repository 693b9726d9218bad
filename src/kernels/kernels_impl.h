// The kernels, written once against a register of 16 lanes. kernels_<isa>.cpp
// includes it with its own `Simd` and nothing else: what is compiled for an
// instruction set must not be shared with code for another one, so all of it
// is in an anonymous namespace, and calls only what is inlined for sure.
//
// `Simd` S has the types F (16 f32), I (16 i32) and B (64 bytes), and the
// functions that simd_portable.h spells out.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/kernel_set.h"

#define INGLE_INLINE inline __attribute__((always_inline))

namespace ingle {
namespace {

constexpr int kLanes = 16;
constexpr float kLog2E = 1.44269504f;
// Fifteen bits as 128 * high + low, with both in eight.
constexpr float kTwoPlanesMax = 127 * 128;
constexpr float kOnePlaneMax = 127;

// Calls f(integral_constant<int, i>) for i = 0..N-1.
template <int N, class F>
INGLE_INLINE void unroll(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>)
      __attribute__((always_inline)) {
        (f(std::integral_constant<int, i>()), ...);
      }(std::make_integer_sequence<int, N>());
}

// The first n of 16 lanes, the others 0.
template <class S>
INGLE_INLINE typename S::F load_some(const float* x, int n) {
  if (n >= kLanes) {
    return S::load(x);
  }
  alignas(64) float lanes[kLanes] = {};
  std::memcpy(lanes, x, static_cast<size_t>(n) * sizeof(float));
  return S::load(lanes);
}

template <class S>
INGLE_INLINE void store_some(float* out, typename S::F x, int n) {
  if (n >= kLanes) {
    S::store(out, x);
    return;
  }
  alignas(64) float lanes[kLanes];
  S::store(lanes, x);
  std::memcpy(out, lanes, static_cast<size_t>(n) * sizeof(float));
}

// 2^x for x <= 127; 0 for x < -126.5. Relative error below 3e-8 and rounding:
// a polynomial through the Chebyshev nodes of [-0.5, 0.5].
template <class S>
INGLE_INLINE typename S::F exp2(typename S::F x) {
  const auto clamped = S::min(S::max(x, S::set1(-127)), S::set1(127));
  const auto whole = S::round(clamped);
  const auto f = S::sub(clamped, S::to_float(whole));
  auto y = S::set1(1.54614447e-4f);
  y = S::fma(y, f, S::set1(1.34004282e-3f));
  y = S::fma(y, f, S::set1(9.61805668e-3f));
  y = S::fma(y, f, S::set1(5.55032723e-2f));
  y = S::fma(y, f, S::set1(2.40226509e-1f));
  y = S::fma(y, f, S::set1(6.93147207e-1f));
  y = S::fma(y, f, S::set1(1));
  return S::mul(y, S::power_of_two(whole));
}

template <class S>
INGLE_INLINE typename S::F sigmoid(typename S::F x) {
  const auto one = S::set1(1);
  return S::div(one, S::add(one, exp2<S>(S::mul(x, S::set1(-kLog2E)))));
}

template <class S>
INGLE_INLINE typename S::F activate(Activation activation, typename S::F x) {
  if (activation == Activation::kSilu) {
    return S::mul(x, sigmoid<S>(x));
  }
  // 0.5 * (1 + tanh(z)) is sigmoid(2 * z).
  const auto cubed = S::mul(S::mul(x, x), x);
  const auto inner = S::fma(cubed, S::set1(0.044715f), x);
  return S::mul(x, sigmoid<S>(S::mul(inner, S::set1(2 * 0.797884561f))));
}

template <class S>
void rms_norm(
    const float* x,
    const float* weight,
    float eps,
    int columns,
    float* out) {
  auto squares = S::set1(0);
  for (int c = 0; c < columns; c += kLanes) {
    const auto v = load_some<S>(x + c, columns - c);
    squares = S::fma(v, v, squares);
  }
  const float mean = S::sum(squares) / static_cast<float>(columns);
  const auto scale = S::set1(1 / __builtin_sqrtf(mean + eps));
  for (int c = 0; c < columns; c += kLanes) {
    const int n = columns - c;
    const auto v = S::mul(load_some<S>(x + c, n), scale);
    store_some<S>(out + c, S::mul(v, load_some<S>(weight + c, n)), n);
  }
}

// ---- Inputs of products

// One token's 32 inputs. `quads` are those of the chunk, [plane][8][T].
template <class S, int kPlanes>
INGLE_INLINE void pack_chunk(
    const float* x,
    int tokens,
    int32_t* quads,
    float* scale,
    float* sum) {
  const auto a = S::load(x);
  const auto b = S::load(x + kLanes);
  const float max = S::max_lane(S::max(S::abs(a), S::abs(b)));
  constexpr float kMax = kPlanes == 2 ? kTwoPlanesMax : kOnePlaneMax;
  const auto inverse = S::set1(max > 0 ? kMax / max : 0);
  const auto ia = S::round(S::mul(a, inverse));
  const auto ib = S::round(S::mul(b, inverse));
  *scale = max / kMax;
  *sum = *scale * static_cast<float>(S::sum_ints(S::add_ints(ia, ib)));

  alignas(64) int8_t bytes[kPlanes][kChunkColumns];
  if constexpr (kPlanes == 2) {
    const auto half = S::set1_int(64);
    const auto ha = S::template shift_right<7>(S::add_ints(ia, half));
    const auto hb = S::template shift_right<7>(S::add_ints(ib, half));
    S::store_bytes(bytes[0], ha);
    S::store_bytes(bytes[0] + kLanes, hb);
    S::store_bytes(bytes[1], S::sub_ints(ia, S::template shift_left<7>(ha)));
    S::store_bytes(
        bytes[1] + kLanes, S::sub_ints(ib, S::template shift_left<7>(hb)));
  } else {
    S::store_bytes(bytes[0], ia);
    S::store_bytes(bytes[0] + kLanes, ib);
  }
  for (int i = 0; i < kPlanes * kChunkColumns / 4; ++i) {
    std::memcpy(quads + i * tokens, &bytes[0][4 * i], 4);
  }
}

template <class S, int kPlanes>
void pack_planes(const float* const* x, const Tile& tile) {
  const int chunks = tile.columns / kChunkColumns;
  constexpr int kQuads = kPlanes * kChunkColumns / 4;
  for (int t = 0; t < tile.tokens; ++t) {
    for (int c = 0; c < chunks; ++c) {
      const int at = c * tile.tokens + t;
      pack_chunk<S, kPlanes>(
          x[t] + c * kChunkColumns,
          tile.tokens,
          tile.quads + c * kQuads * tile.tokens + t,
          tile.scales + at,
          tile.sums + at);
    }
  }
}

template <class S>
void pack_tile(const float* const* x, const Tile& tile) {
  switch (tile.inputs) {
    case Inputs::kOnePlane:
      return pack_planes<S, 1>(x, tile);
    case Inputs::kTwoPlanes:
      return pack_planes<S, 2>(x, tile);
    case Inputs::kFloats:
      break;
  }
  for (int t = 0; t < tile.tokens; ++t) {
    for (int c = 0; c < tile.columns; ++c) {
      tile.values[c * tile.tokens + t] = x[t][c];
    }
  }
}

// ---- Products

// Quad q of the 16 rows, as bytes: see matrix.h.
template <class S, int kBits, int q>
INGLE_INLINE typename S::B plane(const std::byte* chunk) {
  const auto bytes = S::load_bytes(chunk + 64 * (q % kBits));
  if constexpr (kBits == 8) {
    return bytes;
  } else {
    return S::template bits<kBits*(q / kBits), (1 << kBits) - 1>(bytes);
  }
}

template <class S, int kBits, int q>
INGLE_INLINE typename S::B weights(const std::byte* chunk) {
  if constexpr (kBits == 3) {
    return S::template join<2>(
        plane<S, 2, q>(chunk), plane<S, 1, q>(chunk + 64 * 2));
  } else if constexpr (kBits == 5) {
    return S::template join<4>(
        plane<S, 4, q>(chunk), plane<S, 1, q>(chunk + 64 * 4));
  } else if constexpr (kBits == 6) {
    return S::template join<4>(
        plane<S, 4, q>(chunk), plane<S, 2, q>(chunk + 64 * 4));
  } else {
    return plane<S, kBits, q>(chunk);
  }
}

template <class S>
INGLE_INLINE typename S::F load_floats(const std::byte* p, FloatType type) {
  switch (type) {
    case FloatType::kF16:
      return S::load_f16(p);
    case FloatType::kBF16:
      return S::load_bf16(p);
    case FloatType::kF32:
      break;
  }
  return S::load_unaligned(p);
}

template <class S, int R, int L>
INGLE_INLINE void clear(typename S::I (&sums)[R][L]) {
  unroll<R>([&](auto r) __attribute__((always_inline)) {
    unroll<L>([&](auto l) __attribute__((always_inline)) {
      sums[r][l] = S::set1_int(0);
    });
  });
}

// R panels times T tokens.
template <class S, int R, int T>
using Sums = typename S::F[R][T];

// The exact products of one chunk.
template <class S, int kBits, int kPlanes, int R, int T>
INGLE_INLINE void multiply_chunk(
    const std::byte* const (&panels)[R],
    const int32_t* quads,
    typename S::I (&products)[R][T]) {
  clear<S, R, T>(products);
  const std::byte* chunks[R];
  unroll<R>([&](auto r)
                __attribute__((always_inline)) { chunks[r] = panels[r]; });
  unroll<kPlanes>([&](auto p) __attribute__((always_inline)) {
    if constexpr (p != 0) {
      // Weights are unpacked again: kept, they would push sums out of their
      // registers.
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        asm("" : "+r"(chunks[r]));
      });
      unroll<R * T>([&](auto i) __attribute__((always_inline)) {
        auto& product = products[i / T][i % T];
        product = S::template shift_left<7>(product);
      });
    }
    unroll<kChunkColumns / 4>([&](auto q) __attribute__((always_inline)) {
      typename S::B w[R];
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        w[r] = weights<S, kBits, q>(chunks[r]);
      });
      unroll<T>([&](auto t) __attribute__((always_inline)) {
        const auto x = S::set1_int(quads[(p * 8 + q) * T + t]);
        unroll<R>([&](auto r) __attribute__((always_inline)) {
          products[r][t] = S::template dot<kBits>(products[r][t], w[r], x);
        });
      });
    });
  });
}

// A panel's part of what a chunk adds: `p` has its 16 scales, then 16 biases.
template <class S, int T>
INGLE_INLINE void add_scaled(
    const std::byte* p,
    FloatType type,
    const float* scales,
    const float* input_sums,
    const typename S::I (&products)[T],
    typename S::F (&sums)[T]) {
  const auto scale = load_floats<S>(p, type);
  const auto bias =
      load_floats<S>(p + kLanes * (type == FloatType::kF32 ? 4 : 2), type);
  unroll<T>([&](auto t) __attribute__((always_inline)) {
    const auto product = S::to_float(products[t]);
    sums[t] = S::fma(product, S::mul(scale, S::set1(scales[t])), sums[t]);
    sums[t] = S::fma(bias, S::set1(input_sums[t]), sums[t]);
  });
}

template <class S, int kBits, int kPlanes, int R, int T>
void multiply_quantized(
    const PackedMatrix& m,
    const std::byte* const* panels,
    const Tile& tile,
    Sums<S, R, T>& out) {
  constexpr int kChunkBytes = 64 * kBits;
  const FloatType type = m.type;
  const int group_chunks = m.group_size / kChunkColumns;
  const int scales_bytes = 2 * kLanes * (type == FloatType::kF32 ? 4 : 2);
  const int32_t* quads = tile.quads;
  const float* scales = tile.scales;
  const float* input_sums = tile.sums;
  const std::byte* at[R];
  typename S::F sums[R][T];
  unroll<R>([&](auto r) __attribute__((always_inline)) {
    at[r] = panels[r];
    unroll<T>([&](auto t)
                  __attribute__((always_inline)) { sums[r][t] = S::set1(0); });
  });
  for (int left = m.columns / kChunkColumns; left > 0;) {
    for (int c = group_chunks; c > 0; --c, --left) {
      typename S::I products[R][T];
      multiply_chunk<S, kBits, kPlanes, R, T>(at, quads, products);
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        add_scaled<S, T>(
            at[r] + c * kChunkBytes,
            type,
            scales,
            input_sums,
            products[r],
            sums[r]);
        at[r] += kChunkBytes;
      });
      quads += kPlanes * 8 * T;
      scales += T;
      input_sums += T;
    }
    unroll<R>([&](auto r)
                  __attribute__((always_inline)) { at[r] += scales_bytes; });
  }
  unroll<R * T>([&](auto i) __attribute__((always_inline)) {
    out[i / T][i % T] = sums[i / T][i % T];
  });
}

template <class S, int R, int T>
void multiply_dense(
    const PackedMatrix& m,
    const std::byte* const* panels,
    const Tile& tile,
    Sums<S, R, T>& out) {
  const ptrdiff_t bytes = kLanes * (m.type == FloatType::kF32 ? 4 : 2);
  typename S::F sums[R][T];
  unroll<R * T>([&](auto i) __attribute__((always_inline)) {
    sums[i / T][i % T] = S::set1(0);
  });
  const float* values = tile.values;
  for (int c = 0; c < m.columns; ++c, values += T) {
    typename S::F w[R];
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      w[r] = load_floats<S>(panels[r] + c * bytes, m.type);
    });
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      const auto x = S::set1(values[t]);
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        sums[r][t] = S::fma(w[r], x, sums[r][t]);
      });
    });
  }
  unroll<R * T>([&](auto i) __attribute__((always_inline)) {
    out[i / T][i % T] = sums[i / T][i % T];
  });
}

template <class S, int R, int T>
using MultiplyFunction = void (*)(
    const PackedMatrix&,
    const std::byte* const*,
    const Tile&,
    Sums<S, R, T>&);

template <class S, int kPlanes, int R, int T>
MultiplyFunction<S, R, T> quantized_function(int bits) {
  switch (bits) {
    case 2:
      return multiply_quantized<S, 2, kPlanes, R, T>;
    case 3:
      return multiply_quantized<S, 3, kPlanes, R, T>;
    case 4:
      return multiply_quantized<S, 4, kPlanes, R, T>;
    case 5:
      return multiply_quantized<S, 5, kPlanes, R, T>;
    case 6:
      return multiply_quantized<S, 6, kPlanes, R, T>;
    default:
      return multiply_quantized<S, 8, kPlanes, R, T>;
  }
}

template <class S, int R, int T>
MultiplyFunction<S, R, T> multiply_function(int bits, Inputs inputs) {
  switch (inputs) {
    case Inputs::kOnePlane:
      return quantized_function<S, 1, R, T>(bits);
    case Inputs::kTwoPlanes:
      return quantized_function<S, 2, R, T>(bits);
    case Inputs::kFloats:
      break;
  }
  return multiply_dense<S, R, T>;
}

// y + bias, where there is one; lanes past the last row are of no use.
template <class S>
INGLE_INLINE typename S::F
add_bias(typename S::F y, const float* bias, int row, int rows) {
  return bias == nullptr ? y : S::add(y, load_some<S>(bias + row, rows - row));
}

template <class S, int T>
void store_panel(
    const Product& product,
    int panel,
    const typename S::F (&sums)[T]) {
  const int row = panel * kPanelRows;
  const int rows = product.matrix->rows;
  for (int t = 0; t < T; ++t) {
    const int64_t at = t * product.stride + row;
    auto y = add_bias<S>(sums[t], product.bias, row, rows);
    if (product.addend != nullptr) {
      y = S::add(load_some<S>(product.addend + at, rows - row), y);
    }
    store_some<S>(product.out + at, y, rows - row);
  }
}

// The panels of a gate and an up-projection, side by side.
template <class S, int T>
void multiply_gated(
    const Product& product,
    int begin,
    int end,
    const Tile& tile) {
  const PackedMatrix& m = *product.matrix;
  const auto multiply = multiply_function<S, 2, T>(m.bits, tile.inputs);
  for (int p = begin; p < end; ++p) {
    const std::byte* panels[2] = {m.panel(p), product.up->panel(p)};
    Sums<S, 2, T> sums;
    multiply(m, panels, tile, sums);
    const int row = p * kPanelRows;
    for (int t = 0; t < T; ++t) {
      const auto gate = add_bias<S>(sums[0][t], product.bias, row, m.rows);
      const auto up = add_bias<S>(sums[1][t], product.up_bias, row, m.rows);
      store_some<S>(
          product.out + t * product.stride + row,
          S::mul(activate<S>(product.activation, gate), up),
          m.rows - row);
    }
  }
}

template <class S, int R, int T>
int multiply_panels(
    const Product& product,
    int begin,
    int end,
    const Tile& tile) {
  const PackedMatrix& m = *product.matrix;
  const auto multiply = multiply_function<S, R, T>(m.bits, tile.inputs);
  for (; begin + R <= end; begin += R) {
    const std::byte* panels[R];
    Sums<S, R, T> sums;
    for (int r = 0; r < R; ++r) {
      panels[r] = m.panel(begin + r);
    }
    multiply(m, panels, tile, sums);
    for (int r = 0; r < R; ++r) {
      store_panel<S, T>(product, begin + r, sums[r]);
    }
  }
  return begin;
}

template <class S, int T>
void multiply_tile(
    const Product& product,
    int begin,
    int end,
    const Tile& tile) {
  if (tile.tokens != T) {
    if constexpr (T > 1) {
      multiply_tile<S, T - 1>(product, begin, end, tile);
    }
    return;
  }
  if (product.up != nullptr) {
    return multiply_gated<S, T>(product, begin, end, tile);
  }
  begin = multiply_panels<S, S::kPanels, T>(product, begin, end, tile);
  multiply_panels<S, 1, T>(product, begin, end, tile);
}

template <class S>
void multiply(const Product& product, int begin, int end, const Tile& tile) {
  multiply_tile<S, S::kTileTokens>(product, begin, end, tile);
}

// ---- Positions

template <class S>
void rotate(
    float* head,
    const float* cosines,
    const float* sines,
    int dims,
    bool traditional) {
  const int half = dims / 2;
  if (traditional) {
    for (int i = 0; i < half; ++i) {
      const float a = head[2 * i];
      const float b = head[2 * i + 1];
      head[2 * i] = a * cosines[i] - b * sines[i];
      head[2 * i + 1] = a * sines[i] + b * cosines[i];
    }
    return;
  }
  for (int i = 0; i < half; i += kLanes) {
    const int n = half - i;
    const auto a = load_some<S>(head + i, n);
    const auto b = load_some<S>(head + half + i, n);
    const auto cosine = load_some<S>(cosines + i, n);
    const auto sine = load_some<S>(sines + i, n);
    const auto first = S::sub(S::mul(a, cosine), S::mul(b, sine));
    const auto second = S::add(S::mul(a, sine), S::mul(b, cosine));
    store_some<S>(head + i, first, n);
    store_some<S>(head + half + i, second, n);
  }
}

// ---- Keys and values

INGLE_INLINE float ratio(float a, float b) {
  return b > 0 ? a / b : 0;
}

// Up to 16 elements, the missing ones 0.
template <class S>
INGLE_INLINE void
quantize_lanes(const float* x, int n, float inverse, int16_t* out) {
  const auto v = S::mul(load_some<S>(x, n), S::set1(inverse));
  S::store_i16(out, S::round(v));
}

template <class S>
INGLE_INLINE float norm(const float* x, int n) {
  auto squares = S::set1(0);
  for (int i = 0; i < n; i += kLanes) {
    const auto v = load_some<S>(x + i, n - i);
    squares = S::fma(v, v, squares);
  }
  return __builtin_sqrtf(S::sum(squares));
}

template <class S>
INGLE_INLINE float largest(const float* x, int n) {
  auto max = S::set1(0);
  for (int i = 0; i < n; i += kLanes) {
    max = S::max(max, S::abs(load_some<S>(x + i, n - i)));
  }
  return S::max_lane(max);
}

template <class S>
float pack_query(const float* x, const KvBlockShape& shape, int32_t* pairs) {
  const float size = norm<S>(x, shape.head_dim);
  alignas(64) int16_t elements[kLanes];
  for (int i = 0; i < shape.padded_dim(); i += kLanes) {
    quantize_lanes<S>(
        x + i, shape.head_dim - i, ratio(kKeyNorm, size), elements);
    std::memcpy(pairs + i / 2, elements, sizeof elements);
  }
  return size / kKeyNorm;
}

template <class S>
void put_kv(
    const float* key,
    const float* value,
    const KvBlockShape& shape,
    int position,
    std::byte* block) {
  const float key_size = norm<S>(key, shape.head_dim);
  const float value_size = largest<S>(value, shape.head_dim);
  const int dim = shape.padded_dim();
  std::byte* key_at = block + 4 * position;
  std::byte* value_at = block + shape.half_bytes() +
      static_cast<ptrdiff_t>(4) * dim * (position / 2) + 2 * (position % 2);
  alignas(64) int16_t elements[kLanes];
  for (int i = 0; i < dim; i += kLanes) {
    const int n = shape.head_dim - i;
    quantize_lanes<S>(key + i, n, ratio(kKeyNorm, key_size), elements);
    for (int j = 0; j < kLanes; j += 2, key_at += 4 * kBlockPositions) {
      std::memcpy(key_at, elements + j, 4);
    }
    quantize_lanes<S>(value + i, n, ratio(kValueMax, value_size), elements);
    for (int j = 0; j < kLanes; ++j, value_at += 4) {
      std::memcpy(value_at, elements + j, 2);
    }
  }
  const auto scales = reinterpret_cast<float*>(block + shape.scales_offset());
  scales[position] = key_size / kKeyNorm;
  scales[kBlockPositions + position] = value_size / kValueMax;
}

// ---- Attention

struct SpanScratch {
  alignas(64) float scores[kMaxQueryRows][kSpanPositions];
  alignas(64) int16_t weights[kMaxQueryRows][kSpanPositions];
  float inverse[kMaxQueryRows]; // what the integer weights are times of
};

// sums[row][lane] += dot(left[row], right[lane]) over `pairs` pairs.
template <class S, int R, int L>
INGLE_INLINE void multiply_pairs(
    const int32_t* const (&left)[R],
    const std::byte* right,
    size_t right_stride,
    int pairs,
    typename S::I (&sums)[R][L]) {
  for (int i = 0; i < pairs; ++i, right += right_stride) {
    typename S::I lanes[L];
    unroll<L>([&](auto l) __attribute__((always_inline)) {
      lanes[l] = S::load_ints(right + 64 * l);
    });
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      const auto x = S::set1_int(left[r][i]);
      unroll<L>([&](auto l) __attribute__((always_inline)) {
        sums[r][l] = S::dot_pairs(sums[r][l], lanes[l], x);
      });
    });
  }
}

// The blocks of a span that some row sees.
struct BlockRange {
  int begin = kSpanBlocks;
  int end = 0;
};

inline BlockRange blocks_seen(const SpanQuery& q) {
  BlockRange range;
  for (int r = 0; r < q.rows; ++r) {
    if (q.begins[r] >= q.ends[r]) {
      continue;
    }
    const int begin = q.begins[r] / kBlockPositions;
    const int end = (q.ends[r] + kBlockPositions - 1) / kBlockPositions;
    range.begin = begin < range.begin ? begin : range.begin;
    range.end = end > range.end ? end : range.end;
  }
  return range;
}

template <class S, int R>
void score_block(const SpanQuery& q, int block, SpanScratch& scratch) {
  constexpr int L = S::kAttentionLanes;
  const std::byte* keys = q.blocks + block * q.block_stride;
  const auto key_scales =
      reinterpret_cast<const float*>(keys + q.shape.scales_offset());
  const int32_t* queries[R];
  for (int r = 0; r < R; ++r) {
    queries[r] = q.queries[r];
  }
  for (int p = 0; p < kBlockPositions; p += L * kLanes) {
    typename S::I sums[R][L];
    clear<S, R, L>(sums);
    multiply_pairs<S, R, L>(
        queries,
        keys + 4 * p,
        4 * kBlockPositions,
        q.shape.padded_dim() / 2,
        sums);
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      float* scores = scratch.scores[r] + block * kBlockPositions + p;
      unroll<L>([&](auto l) __attribute__((always_inline)) {
        const auto scale =
            S::mul(S::set1(q.scales[r]), S::load(key_scales + p + kLanes * l));
        S::store(scores + kLanes * l, S::mul(S::to_float(sums[r][l]), scale));
      });
    });
  }
}

// cap * tanh(score / cap).
template <class S>
INGLE_INLINE typename S::F soften(typename S::F score, float cap) {
  const auto magnitude = S::mul(S::abs(score), S::set1(-2 * kLog2E / cap));
  const auto t = exp2<S>(magnitude);
  const auto one = S::set1(1);
  const auto tanh = S::div(S::sub(one, t), S::add(one, t));
  return S::copy_sign(S::mul(tanh, S::set1(cap)), score);
}

constexpr float kUnseen = -1e30f;

// Masks a row's scores and gives their largest.
template <class S>
INGLE_INLINE float
mask_scores(const SpanQuery& q, int row, BlockRange range, float* scores) {
  auto max = S::set1(kUnseen);
  for (int i = range.begin * kBlockPositions; i < range.end * kBlockPositions;
       i += kLanes) {
    auto s = S::load(scores + i);
    if (q.soft_cap > 0) {
      s = soften<S>(s, q.soft_cap);
    }
    if (i < q.begins[row] || i + kLanes > q.ends[row]) {
      s = S::keep_lanes(s, q.begins[row] - i, q.ends[row] - i, kUnseen);
    }
    S::store(scores + i, s);
    max = S::max(max, s);
  }
  return S::max_lane(max);
}

// Scores -> their weights times the values' scales, as integers.
template <class S>
INGLE_INLINE void weigh_row(
    const SpanQuery& q,
    int row,
    BlockRange range,
    SpanScratch& scratch,
    PartialAttention& result) {
  float* scores = scratch.scores[row];
  result.max = mask_scores<S>(q, row, range, scores);
  auto weight = S::set1(0);
  auto scaled_sum = S::set1(0);
  auto scaled_max = S::set1(0);
  for (int b = range.begin; b < range.end; ++b) {
    const auto value_scales =
        reinterpret_cast<const float*>(
            q.blocks + b * q.block_stride + q.shape.scales_offset()) +
        kBlockPositions;
    for (int i = 0; i < kBlockPositions; i += kLanes) {
      float* at = scores + b * kBlockPositions + i;
      const auto p = exp2<S>(S::sub(S::load(at), S::set1(result.max)));
      weight = S::add(weight, p);
      // A lane that is not seen may have any scale, and a weight of 0.
      const auto scaled = S::mul(p, S::load(value_scales + i));
      scaled_sum = S::add(scaled_sum, scaled);
      scaled_max = S::max(scaled_max, scaled);
      S::store(at, scaled);
    }
  }
  result.weight = S::sum(weight);
  const float largest = S::max_lane(scaled_max);
  const float sum = S::sum(scaled_sum);
  const float by_largest = kWeightMax / largest;
  const float by_sum = kWeightSum / sum;
  const float factor =
      largest > 1e-30f ? (by_largest < by_sum ? by_largest : by_sum) : 0;
  scratch.inverse[row] = factor > 0 ? 1 / factor : 0;
  for (int i = range.begin * kBlockPositions; i < range.end * kBlockPositions;
       i += kLanes) {
    S::store_i16(
        scratch.weights[row] + i,
        S::round(S::mul(S::load(scores + i), S::set1(factor))));
  }
}

template <class S, int R, int L>
INGLE_INLINE void sum_values(
    const SpanQuery& q,
    BlockRange range,
    int dim,
    SpanScratch& scratch,
    PartialAttention* results) {
  typename S::I sums[R][L];
  clear<S, R, L>(sums);
  for (int b = range.begin; b < range.end; ++b) {
    const int32_t* weights[R];
    for (int r = 0; r < R; ++r) {
      weights[r] = reinterpret_cast<const int32_t*>(
          scratch.weights[r] + b * kBlockPositions);
    }
    const std::byte* values =
        q.blocks + b * q.block_stride + q.shape.half_bytes() + 4 * dim;
    multiply_pairs<S, R, L>(
        weights,
        values,
        4 * static_cast<size_t>(q.shape.padded_dim()),
        kBlockPositions / 2,
        sums);
  }
  unroll<R>([&](auto r) __attribute__((always_inline)) {
    const auto inverse = S::set1(scratch.inverse[r]);
    unroll<L>([&](auto l) __attribute__((always_inline)) {
      S::store(
          results[r].values + dim + kLanes * l,
          S::mul(S::to_float(sums[r][l]), inverse));
    });
  });
}

template <class S, int R>
void attend_rows(const SpanQuery& q, PartialAttention* results) {
  constexpr int L = S::kAttentionLanes;
  const BlockRange range = blocks_seen(q);
  SpanScratch scratch;
  for (int b = range.begin; b < range.end; ++b) {
    score_block<S, R>(q, b, scratch);
  }
  for (int r = 0; r < R; ++r) {
    if (q.begins[r] < q.ends[r]) {
      weigh_row<S>(q, r, range, scratch, results[r]);
    } else {
      results[r].max = kUnseen;
      results[r].weight = 0;
      scratch.inverse[r] = 0;
      std::memset(scratch.weights[r], 0, sizeof scratch.weights[r]);
    }
  }
  const int dims = q.shape.padded_dim();
  int dim = 0;
  for (; dim + L * kLanes <= dims; dim += L * kLanes) {
    sum_values<S, R, L>(q, range, dim, scratch, results);
  }
  for (; dim < dims; dim += kLanes) {
    sum_values<S, R, 1>(q, range, dim, scratch, results);
  }
}

template <class S, int R>
void attend_up_to(const SpanQuery& q, PartialAttention* results) {
  if (q.rows == R) {
    attend_rows<S, R>(q, results);
  } else if constexpr (R > 1) {
    attend_up_to<S, R - 1>(q, results);
  }
}

template <class S>
void attend_span(const SpanQuery& q, PartialAttention* results) {
  attend_up_to<S, S::kQueryRows>(q, results);
}

template <class S>
void merge(PartialAttention& total, const PartialAttention& part, int n) {
  const float max = total.max > part.max ? total.max : part.max;
  const auto keep = exp2<S>(S::set1(total.max - max));
  const auto take = exp2<S>(S::set1(part.max - max));
  alignas(64) float factors[2][kLanes];
  S::store(factors[0], keep);
  S::store(factors[1], take);
  total.max = max;
  total.weight = total.weight * factors[0][0] + part.weight * factors[1][0];
  for (int i = 0; i < n; i += kLanes) {
    const auto kept = S::mul(S::load(total.values + i), keep);
    S::store(total.values + i, S::fma(S::load(part.values + i), take, kept));
  }
}

template <class S>
void finish(const PartialAttention& total, int n, float* out) {
  const auto inverse = S::set1(1 / total.weight);
  for (int i = 0; i < n; i += kLanes) {
    store_some<S>(out + i, S::mul(S::load(total.values + i), inverse), n - i);
  }
}

// ---- Logits

template <class S>
float largest_of(const float* x, int n, bool& is_sound) {
  auto max = S::set1(-__builtin_inff());
  uint32_t sound = 0xffff;
  const auto limit = S::set1(__FLT_MAX__);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto v = S::load(x + i);
    sound &= S::at_least(limit, v); // not of NaN
    max = S::max(v, max);
  }
  float result = S::max_lane(max);
  is_sound &= sound == 0xffff;
  for (; i < n; ++i) {
    is_sound &= x[i] <= __FLT_MAX__;
    result = x[i] > result ? x[i] : result;
  }
  return result;
}

template <class S>
double exp_sum(const float* x, int n, float peak, float rate) {
  constexpr int kBlock = 1024; // that f32 adds up without losing much
  const auto scale = S::set1(rate * kLog2E);
  double total = 0;
  for (int begin = 0; begin < n; begin += kBlock) {
    const int end = begin + kBlock < n ? begin + kBlock : n;
    auto sum = S::set1(0);
    for (int i = begin; i < end; i += kLanes) {
      auto v = load_some<S>(x + i, end - i);
      if (end - i < kLanes) {
        v = S::keep_lanes(v, 0, end - i, -__builtin_inff());
      }
      sum = S::add(sum, exp2<S>(S::mul(S::sub(v, S::set1(peak)), scale)));
    }
    total += static_cast<double>(S::sum(sum));
  }
  return total;
}

template <class S>
int find_at_least(const float* x, int n, float floor, int32_t* indices) {
  const auto bar = S::set1(floor);
  int found = 0;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    uint32_t lanes = S::at_least(S::load(x + i), bar);
    for (; lanes != 0; lanes &= lanes - 1) {
      indices[found++] = i + __builtin_ctz(lanes);
    }
  }
  for (; i < n; ++i) {
    indices[found] = i;
    found += x[i] >= floor ? 1 : 0;
  }
  return found;
}

template <class S>
constexpr KernelSet make_kernel_set(Isa isa) {
  static_assert(S::kQueryRows <= kMaxQueryRows && S::kTileTokens <= 8);
  return {
      isa,
      S::kTileTokens,
      S::kPanels,
      S::kQueryRows,
      rms_norm<S>,
      pack_tile<S>,
      multiply<S>,
      rotate<S>,
      pack_query<S>,
      put_kv<S>,
      attend_span<S>,
      merge<S>,
      finish<S>,
      largest_of<S>,
      exp_sum<S>,
      find_at_least<S>};
}

} // namespace
} // namespace ingle
