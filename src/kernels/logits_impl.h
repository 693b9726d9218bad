// What a sampler asks of logits: see kernel_set.h.
#pragma once

#include "kernels/kernel_set.h"
#include "kernels/lanes.h"

namespace ingle {
namespace {

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

// exp((x - peak) * scale / log2(e)) of up to 16 lanes, the missing ones 0.
template <class S>
INGLE_INLINE typename S::F
exp_lanes(const float* x, int n, typename S::F peak, typename S::F scale) {
  auto v = load_some<S>(x, n);
  if (n < kLanes) {
    v = S::keep_lanes(v, 0, n, -__builtin_inff());
  }
  return exp2<S>(S::mul(S::sub(v, peak), scale));
}

constexpr int kSumBlock = 1024; // that f32 adds up without losing much

template <class S>
double exp_sum(const float* x, int n, float peak, float rate, float floor) {
  const auto scale = S::set1(rate * kLog2E);
  const auto top = S::set1(peak);
  const auto bar = S::set1(floor);
  double total = 0;
  for (int begin = 0; begin < n; begin += kSumBlock) {
    const int end = begin + kSumBlock < n ? begin + kSumBlock : n;
    auto sum = S::set1(0);
    for (int i = begin; i < end; i += kLanes) {
      const auto v = exp_lanes<S>(x + i, end - i, top, scale);
      const auto at = load_some<S>(x + i, end - i);
      sum = S::add(sum, S::where_at_least(at, bar, v));
    }
    total += static_cast<double>(S::sum(sum));
  }
  return total;
}

template <class S>
void exp_sums(
    const float* x,
    int n,
    float peak,
    const float* floors,
    double* sums) {
  const auto scale = S::set1(kLog2E);
  const auto top = S::set1(peak);
  for (int j = 0; j < kFloors; ++j) {
    sums[j] = 0;
  }
  for (int begin = 0; begin < n; begin += kSumBlock) {
    const int end = begin + kSumBlock < n ? begin + kSumBlock : n;
    typename S::F block[kFloors];
    unroll<kFloors>(
        [&](auto j) __attribute__((always_inline)) { block[j] = S::set1(0); });
    for (int i = begin; i < end; i += kLanes) {
      const auto v = exp_lanes<S>(x + i, end - i, top, scale);
      const auto at = load_some<S>(x + i, end - i);
      unroll<kFloors>([&](auto j) __attribute__((always_inline)) {
        block[j] =
            S::add(block[j], S::where_at_least(at, S::set1(floors[j]), v));
      });
    }
    unroll<kFloors>([&](auto j) __attribute__((always_inline)) {
      sums[j] += static_cast<double>(S::sum(block[j]));
    });
  }
}

template <class S>
int find_between(
    const float* x,
    int n,
    float low,
    float high,
    int32_t* indices) {
  const auto bottom = S::set1(low);
  const auto top = S::set1(high);
  int found = 0;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto v = S::load(x + i);
    uint32_t lanes = S::at_least(v, bottom) & ~S::at_least(v, top);
    for (; lanes != 0; lanes &= lanes - 1) {
      indices[found++] = i + __builtin_ctz(lanes);
    }
  }
  for (; i < n; ++i) {
    indices[found] = i;
    found += x[i] >= low && !(x[i] >= high) ? 1 : 0;
  }
  return found;
}

} // namespace
} // namespace ingle
