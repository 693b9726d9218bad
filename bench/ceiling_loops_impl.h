// The loops of ceiling_loops.h, written once against a Simd of src/kernels.
// ceiling_loops_<isa>.cpp includes it, with the rules of kernels_impl.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ceiling_loops.h"

namespace ingle {
namespace {

constexpr int kMaxSums = 16;
// Two operands, and where sums begin: read through unknown().
alignas(64) constexpr std::byte kOperands[128] = {};
alignas(64) constexpr std::byte kStarts[64 * kMaxSums] = {};

// p, of which the compiler knows no more than its type: it can't foresee what
// is read there.
inline __attribute__((always_inline)) const std::byte* unknown(
    const std::byte* p) {
  asm("" : "+r"(p));
  return p;
}

// step(sum, operands) on sums that stay in registers, and add(sum, sum) of
// them in the end.
template <int kSums, class Load, class Step, class Add>
inline __attribute__((always_inline)) auto
repeat(int64_t rounds, Load load, Step step, Add add) {
  static_assert(kSums <= kMaxSums);
  decltype(load(kStarts)) sums[kSums];
  const std::byte* start = unknown(kStarts);
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) {
    sums[i] = load(start + 64 * i); // each its own: none is another's copy
  }
  const std::byte* operands = kOperands;
  for (; rounds > 0; --rounds) {
    operands = unknown(operands);
#pragma GCC unroll 16
    for (auto& sum : sums) {
      sum = step(sum, operands);
    }
  }
#pragma GCC unroll 16
  for (int i = 1; i < kSums; ++i) {
    sums[0] = add(sums[0], sums[i]);
  }
  return sums[0];
}

template <class S>
struct Loops {
  // At least so many that none waits for itself.
  static constexpr int kSums = std::max(6, S::kTileTokens* S::kPanels);
  static constexpr int kLanes = 16;

  static double operations(int64_t rounds, int of_a_lane) {
    return 1.0 * kSums * kLanes * of_a_lane * static_cast<double>(rounds);
  }
  template <class Step>
  static int32_t int_sums(int64_t rounds, Step step) {
    return S::sum_ints(repeat<kSums>(
        rounds,
        [](const std::byte* p)
            __attribute__((always_inline)) { return S::load_ints(p); },
        step,
        [](auto a, auto b)
            __attribute__((always_inline)) { return S::add_ints(a, b); }));
  }
  static double i8(int64_t rounds) {
    const int32_t sum = int_sums(
        rounds,
        [](auto total, const std::byte* p) __attribute__((always_inline)) {
          return S::template dot<4>(
              total, S::load_bytes(p), S::load_ints(p + 64));
        });
    return operations(rounds, 8) + sum;
  }
  static double i16(int64_t rounds) {
    const int32_t sum = int_sums(
        rounds,
        [](auto total, const std::byte* p) __attribute__((always_inline)) {
          return S::dot_pairs(total, S::load_ints(p), S::load_ints(p + 64));
        });
    return operations(rounds, 4) + sum;
  }
  static double f32(int64_t rounds) {
    const auto sum = repeat<kSums>(
        rounds,
        [](const std::byte* p)
            __attribute__((always_inline)) { return S::load_unaligned(p); },
        [](auto total, const std::byte* p) __attribute__((always_inline)) {
          return S::fma(S::load_unaligned(p), S::load_unaligned(p + 64), total);
        },
        [](auto a, auto b)
            __attribute__((always_inline)) { return S::add(a, b); });
    return operations(rounds, 2) + static_cast<double>(S::sum(sum));
  }
};

template <class S>
constexpr CeilingLoops make_ceiling_loops() {
  return {Loops<S>::i8, Loops<S>::i16, Loops<S>::f32};
}

} // namespace
} // namespace ingle
