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

// 2^x for -127 <= x <= 127; 0 for x < -126.5. Relative error below 3e-8 and
// rounding: a polynomial through the Chebyshev nodes of [-0.5, 0.5].
template <class S>
INGLE_INLINE typename S::F exp2_within(typename S::F x) {
  const auto whole = S::round(x);
  const auto f = S::sub(x, S::to_float(whole));
  auto y = S::set1(1.54614447e-4f);
  y = S::fma(y, f, S::set1(1.34004282e-3f));
  y = S::fma(y, f, S::set1(9.61805668e-3f));
  y = S::fma(y, f, S::set1(5.55032723e-2f));
  y = S::fma(y, f, S::set1(2.40226509e-1f));
  y = S::fma(y, f, S::set1(6.93147207e-1f));
  y = S::fma(y, f, S::set1(1));
  return S::mul(y, S::power_of_two(whole));
}

// The same for any x, and for x <= 127.
template <class S>
INGLE_INLINE typename S::F exp2(typename S::F x) {
  return exp2_within<S>(S::min(S::max(x, S::set1(-127)), S::set1(127)));
}
template <class S>
INGLE_INLINE typename S::F exp2_up_to_127(typename S::F x) {
  return exp2_within<S>(S::max(x, S::set1(-127)));
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
