// What all kernels are made of, in terms of a register of 16 lanes.
//
// kernels_<isa>.cpp includes these files with its own `Simd` and nothing else:
// what is compiled for an instruction set must not be shared with code for
// another one, so all of it is in an anonymous namespace, and calls only what
// is inlined for sure. `Simd` S has the types F (16 f32), I (16 i32) and B (64
// bytes), and the functions that simd_portable.h spells out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/kernel_set.h"

#define INGLE_INLINE inline __attribute__((always_inline))

namespace ingle {
namespace {

constexpr int kLanes = 16;
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

// a / b where b is of a size that means anything, else 0.
INGLE_INLINE float ratio(float a, float b) {
  return b > 1e-30f ? a / b : 0;
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

// sum(c[i] * x^i), from c[last].
template <class S, int N>
INGLE_INLINE typename S::F polynomial(const float (&c)[N], typename S::F x) {
  auto y = S::set1(c[N - 1]);
  unroll<N - 1>([&](auto i) __attribute__((always_inline)) {
    y = S::fma(y, x, S::set1(c[N - 2 - i]));
  });
  return y;
}

// 2^x for -126 <= x <= 127, below that anything. c: 2^x for -0.5 <= x <= 0.5.
template <class S, int N>
INGLE_INLINE typename S::F exp2_by(const float (&c)[N], typename S::F x) {
  const auto whole = S::whole(x);
  return S::scale(polynomial<S>(c, S::sub(x, whole)), whole);
}

// Polynomials for 2^x. Relative error below 3e-8 and rounding: one through the
// Chebyshev nodes.
inline constexpr float kExp2[] = {
    1,
    6.93147207e-1f,
    2.40226509e-1f,
    5.55032723e-2f,
    9.61805668e-3f,
    1.34004282e-3f,
    1.54614447e-4f};
// Relative error below 2.6e-6 (minimax): for what becomes an integer of 15
// bits.
inline constexpr float kShortExp2[] = {
    9.99999261e-1f,
    6.93121815e-1f,
    2.40247448e-1f,
    5.59178603e-2f,
    9.57010191e-3f};

// 2^x for any x: 0 below -126, 2^127 above 127.
template <class S>
INGLE_INLINE typename S::F exp2(typename S::F x) {
  const auto y = exp2_by<S>(kExp2, S::min(x, S::set1(127)));
  return S::where_at_least(x, S::set1(-126), y);
}
// The same for x <= 127, less exactly.
template <class S>
INGLE_INLINE typename S::F short_exp2(typename S::F x) {
  return S::where_at_least(x, S::set1(-126), exp2_by<S>(kShortExp2, x));
}

template <class S>
INGLE_INLINE typename S::F sigmoid(typename S::F x) {
  const auto one = S::set1(1);
  return S::div(one, S::add(one, exp2<S>(S::mul(x, S::set1(-kLog2E)))));
}

// erfc(z) * exp(z^2) for z >= 0, over t, in t = 1 / (1 + kErfcSlope * z).
// Absolute error of erfc below 6e-9 and rounding (minimax).
inline constexpr float kErfcSlope = 0.47f;
inline constexpr float kErfc[] = {
    2.65635182e-1f,
    2.53134634e-1f,
    3.20159817e-1f,
    -9.94057140e-2f,
    5.82729005e-1f,
    -4.08172564e-1f,
    8.59196460e-2f};

// x times the share of a normal distribution that is below x.
template <class S>
INGLE_INLINE typename S::F gelu(typename S::F x) {
  const auto one = S::set1(1);
  const auto z = S::mul(S::abs(x), S::set1(0.707106781f));
  const auto t = S::div(one, S::fma(z, S::set1(kErfcSlope), one));
  const auto power = S::mul(S::mul(z, z), S::set1(-kLog2E));
  const auto scaled = S::mul(polynomial<S>(kErfc, t), t);
  const auto tail = S::mul(S::mul(scaled, exp2<S>(power)), S::set1(0.5f));
  const auto rest = S::fma(tail, S::set1(-2), one);
  return S::mul(x, S::add(tail, S::where_at_least(x, S::set1(0), rest)));
}

template <class S>
INGLE_INLINE typename S::F activate(Activation activation, typename S::F x) {
  if (activation == Activation::kSilu) {
    return S::mul(x, sigmoid<S>(x));
  }
  if (activation == Activation::kClampedSwiglu) {
    const auto low = S::min(x, S::set1(kSwigluLimit));
    return S::mul(low, sigmoid<S>(S::mul(low, S::set1(kSwigluSlope))));
  }
  if (activation == Activation::kGelu) {
    return gelu<S>(x);
  }
  // 0.5 * (1 + tanh(z)) is sigmoid(2 * z).
  const auto cubed = S::mul(S::mul(x, x), x);
  const auto inner = S::fma(cubed, S::set1(0.044715f), x);
  return S::mul(x, sigmoid<S>(S::mul(inner, S::set1(2 * 0.797884561f))));
}

// What a gate lets through of `up`.
template <class S>
INGLE_INLINE typename S::F
pass_gate(Activation activation, typename S::F gate, typename S::F up) {
  if (activation == Activation::kClampedSwiglu) {
    const auto low = S::min(up, S::set1(kSwigluLimit));
    up = S::add(S::max(low, S::set1(-kSwigluLimit)), S::set1(1));
  }
  return S::mul(activate<S>(activation, gate), up);
}

template <class S, int R, int L>
INGLE_INLINE void clear(typename S::I (&sums)[R][L]) {
  unroll<R>([&](auto r) __attribute__((always_inline)) {
    unroll<L>([&](auto l) __attribute__((always_inline)) {
      sums[r][l] = S::set1_int(0);
    });
  });
}

} // namespace
} // namespace ingle
