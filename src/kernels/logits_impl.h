// What a sampler asks of logits: see kernel_set.h.
#pragma once

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

} // namespace
} // namespace ingle
