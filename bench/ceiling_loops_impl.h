// The loops of ceiling_loops.h, written once against a Simd of src/kernels.
// ceiling_loops_<isa>.cpp includes it, with the rules of kernels_impl.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ceiling_loops.h"

namespace ingle {
namespace {

alignas(64) constexpr std::byte kOperands[128] = {};

// step(sum, operands) on sums that stay in registers.
template <int kSums, class Sum, class Step>
inline __attribute__((always_inline)) Sum
repeat(int64_t rounds, Sum zero, Step step) {
  Sum sums[kSums];
#pragma GCC unroll 16
  for (Sum& sum : sums) {
    sum = zero;
  }
  const std::byte* operands = kOperands;
  for (; rounds > 0; --rounds) {
    // What is there is not known: it is read anew, and the sum not foreseen.
    asm("" : "+r"(operands));
#pragma GCC unroll 16
    for (Sum& sum : sums) {
      sum = step(sum, operands);
    }
  }
#pragma GCC unroll 16
  for (int i = 1; i < kSums; ++i) {
    asm("" : : "m"(sums[i])); // all of them are made
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
  static double i8(int64_t rounds) {
    const auto sum = repeat<kSums>(
        rounds,
        S::set1_int(0),
        [](auto total, const std::byte* p) __attribute__((always_inline)) {
          return S::template dot<4>(
              total, S::load_bytes(p), S::load_ints(p + 64));
        });
    return operations(rounds, 8) + S::sum_ints(sum);
  }
  static double i16(int64_t rounds) {
    const auto sum = repeat<kSums>(
        rounds,
        S::set1_int(0),
        [](auto total, const std::byte* p) __attribute__((always_inline)) {
          return S::dot_pairs(total, S::load_ints(p), S::load_ints(p + 64));
        });
    return operations(rounds, 4) + S::sum_ints(sum);
  }
  static double f32(int64_t rounds) {
    const auto sum = repeat<kSums>(
        rounds,
        S::set1(0),
        [](auto total, const std::byte* p) __attribute__((always_inline)) {
          return S::fma(S::load_unaligned(p), S::load_unaligned(p + 64), total);
        });
    return operations(rounds, 2) + static_cast<double>(S::sum(sum));
  }
};

template <class S>
constexpr CeilingLoops make_ceiling_loops() {
  return {Loops<S>::i8, Loops<S>::i16, Loops<S>::f32};
}

} // namespace
} // namespace ingle
