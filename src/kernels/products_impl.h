// Products and what they take: see kernel_set.h, and matrix.h for the layout.
#pragma once

#include "kernels/codes_impl.h"
#include "kernels/kernel_set.h"
#include "kernels/lanes.h"

// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result): offsets
// within a panel, a tile or a block fit an int.

namespace ingle {
namespace {

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

template <class S>
void layer_norm(
    const float* x,
    const float* weight,
    const float* bias,
    float eps,
    int columns,
    float* out) {
  auto total = S::set1(0);
  for (int c = 0; c < columns; c += kLanes) {
    total = S::add(total, load_some<S>(x + c, columns - c));
  }
  const auto width = static_cast<float>(columns);
  const auto mean = S::set1(S::sum(total) / width);
  auto squares = S::set1(0);
  for (int c = 0; c < columns; c += kLanes) {
    const int n = columns - c;
    auto v = S::sub(load_some<S>(x + c, n), mean);
    if (n < kLanes) {
      v = S::keep_lanes(v, 0, n, 0);
    }
    squares = S::fma(v, v, squares);
  }
  const auto scale =
      S::set1(1 / __builtin_sqrtf(S::sum(squares) / width + eps));
  for (int c = 0; c < columns; c += kLanes) {
    const int n = columns - c;
    const auto v = S::mul(S::sub(load_some<S>(x + c, n), mean), scale);
    const auto y =
        S::fma(v, load_some<S>(weight + c, n), load_some<S>(bias + c, n));
    store_some<S>(out + c, y, n);
  }
}

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
  const auto inverse = S::set1(ratio(kMax, max));
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

template <class S>
INGLE_INLINE typename S::F load_floats(const std::byte* p, FloatType type) {
  switch (type) {
    case FloatType::kF16:
      return S::load_f16(p);
    case FloatType::kBF16:
      return S::load_bf16(p);
    case FloatType::kE8M0: // never: MXFP4 loads its own
    case FloatType::kF32:
      break;
  }
  return S::load_unaligned(p);
}

// Asks for the weights that come this much later: what the processor asks for
// by itself ends with a page, and that is soon.
INGLE_INLINE void fetch(const std::byte* p) {
  const auto at = reinterpret_cast<uintptr_t>(p) + 8192; // of whatever it is
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 2);
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
        const std::byte*& chunk = chunks[r]; // clang wants it named before
        asm("" : "+r"(chunk));
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
          products[r][t] =
              S::template dot<byte_bits(kBits)>(products[r][t], w[r], x);
        });
      });
    });
  });
}

// A panel's part of what a chunk adds: `p` has its 16 scales, then 16 biases.
template <class S, int kBits, int T>
INGLE_INLINE void add_scaled(
    const std::byte* p,
    FloatType type,
    const float* scales,
    const float* input_sums,
    const typename S::I (&products)[T],
    typename S::F (&sums)[T]) {
  typename S::F scale;
  typename S::F bias;
  if constexpr (kBits == kMxfp4) {
    scale = S::mul(S::load_e8m0(p), S::set1(0.5f));
    bias = S::mul(scale, S::set1(-kMxfp4Offset));
  } else {
    scale = load_floats<S>(p, type);
    bias = load_floats<S>(p + kLanes * (type == FloatType::kF32 ? 4 : 2), type);
  }
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
  constexpr int kStored = stored_bits(kBits);
  constexpr int kChunkBytes = 64 * kStored;
  const FloatType type = m.type;
  const int group_chunks = m.group_size / kChunkColumns;
  const int scales_bytes =
      kBits == kMxfp4 ? kLanes : 2 * kLanes * (type == FloatType::kF32 ? 4 : 2);
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
      unroll<R * kStored>([&](auto i) __attribute__((always_inline)) {
        fetch(at[i / kStored] + 64 * (i % kStored));
      });
      multiply_chunk<S, kBits, kPlanes, R, T>(at, quads, products);
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        add_scaled<S, kBits, T>(
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
      fetch(panels[r] + c * bytes);
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
MultiplyFunction<S, R, T> quantized_function(const PackedMatrix& m) {
  if (m.is_mxfp4()) {
    return multiply_quantized<S, kMxfp4, kPlanes, R, T>;
  }
  switch (m.bits) {
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
MultiplyFunction<S, R, T> multiply_function(
    const PackedMatrix& m,
    Inputs inputs) {
  switch (inputs) {
    case Inputs::kOnePlane:
      return quantized_function<S, 1, R, T>(m);
    case Inputs::kTwoPlanes:
      return quantized_function<S, 2, R, T>(m);
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
  const auto multiply = multiply_function<S, 2, T>(m, tile.inputs);
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
          pass_gate<S>(product.activation, gate, up),
          m.rows - row);
    }
  }
}

template <class S>
void activate_gate(float* gate, const float* up, Activation activation, int n) {
  for (int i = 0; i < n; i += kLanes) {
    const auto g = load_some<S>(gate + i, n - i);
    const auto y = up == nullptr
        ? activate<S>(activation, g)
        : pass_gate<S>(activation, g, load_some<S>(up + i, n - i));
    store_some<S>(gate + i, y, n - i);
  }
}

template <class S, int R, int T>
int multiply_panels(
    const Product& product,
    int begin,
    int end,
    const Tile& tile) {
  const PackedMatrix& m = *product.matrix;
  const auto multiply = multiply_function<S, R, T>(m, tile.inputs);
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
  // One token waits for memory: a single stream of it is read best.
  constexpr int kPanels = T == 1 ? 1 : S::kPanels;
  begin = multiply_panels<S, kPanels, T>(product, begin, end, tile);
  multiply_panels<S, 1, T>(product, begin, end, tile);
}

template <class S>
void multiply(const Product& product, int begin, int end, const Tile& tile) {
  multiply_tile<S, S::kTileTokens>(product, begin, end, tile);
}

} // namespace
} // namespace ingle

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
