// Products with two thin matrices: see low_rank.h.
#pragma once

#include "kernels/kernel_set.h"
#include "kernels/lanes.h"

namespace ingle {
namespace {

// R rows of A with T tokens. Each sum is one of its own, whatever T and R are.
template <class S, int T, int R>
INGLE_INLINE void low_rank_sums(
    const float* const* x,
    const float* a,
    int columns,
    float* const* sums,
    int first) {
  typename S::F each[T][R];
  unroll<T>([&](auto t) __attribute__((always_inline)) {
    unroll<R>([&](auto r)
                  __attribute__((always_inline)) { each[t][r] = S::set1(0); });
  });
  for (int c = 0; c < columns; c += kLanes) {
    const int n = columns - c;
    typename S::F inputs[T];
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      inputs[t] = load_some<S>(x[t] + c, n);
    });
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      const auto weights =
          load_some<S>(a + static_cast<int64_t>(r) * columns + c, n);
      unroll<T>([&](auto t) __attribute__((always_inline)) {
        each[t][r] = S::fma(inputs[t], weights, each[t][r]);
      });
    });
  }
  unroll<T>([&](auto t) __attribute__((always_inline)) {
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      sums[t][first + r] = S::sum(each[t][r]);
    });
  });
}

template <class S, int R>
INGLE_INLINE void low_rank_rows(
    const float* const* x,
    int tokens,
    const float* a,
    int columns,
    float* const* sums,
    int first) {
  int t = 0;
  for (; t + 2 <= tokens; t += 2) {
    low_rank_sums<S, 2, R>(x + t, a, columns, sums + t, first);
  }
  if (t < tokens) {
    low_rank_sums<S, 1, R>(x + t, a, columns, sums + t, first);
  }
}

template <class S>
void low_rank_in(
    const float* const* x,
    int tokens,
    const float* a,
    int rank,
    int columns,
    float* const* sums) {
  int r = 0;
  for (; r + 4 <= rank; r += 4) {
    const float* rows = a + static_cast<int64_t>(r) * columns;
    low_rank_rows<S, 4>(x, tokens, rows, columns, sums, r);
  }
  for (; r < rank; ++r) {
    const float* row = a + static_cast<int64_t>(r) * columns;
    low_rank_rows<S, 1>(x, tokens, row, columns, sums, r);
  }
}

// P registers of a token's outputs, of which the last has `left` lanes.
template <class S, int P>
INGLE_INLINE void low_rank_add(
    const LowRankSums& sums,
    const float* own,
    const float* b,
    int left,
    float* out) {
  typename S::F total[P];
  unroll<P>([&](auto p)
                __attribute__((always_inline)) { total[p] = S::set1(0); });
  for (int r = 0; r < sums.rank; ++r) {
    const float* row = b + r * sums.b_stride;
    const auto weight = S::set1(own[r]);
    unroll<P>([&](auto p) __attribute__((always_inline)) {
      const int n = p + 1 < P ? kLanes : left;
      total[p] = S::fma(load_some<S>(row + p * kLanes, n), weight, total[p]);
    });
  }
  unroll<P>([&](auto p) __attribute__((always_inline)) {
    const int n = p + 1 < P ? kLanes : left;
    float* at = out + p * kLanes;
    const auto y = S::fma(total[p], S::set1(sums.scale), load_some<S>(at, n));
    store_some<S>(at, y, n);
  });
}

template <class S>
void low_rank_out(const LowRankSums& sums, int n, float* out) {
  constexpr int kTogether = 4 * kLanes;
  for (int i = 0; i < n; i += kTogether) {
    for (int t = 0; t < sums.tokens; ++t) {
      const float* own = sums.values + t * sums.stride;
      const float* b = sums.b + i;
      float* at = out + t * sums.out_stride + i;
      const int left = n - i;
      if (left > 3 * kLanes) {
        low_rank_add<S, 4>(sums, own, b, left - 3 * kLanes, at);
        continue;
      }
      for (int j = 0; j < left; j += kLanes) {
        low_rank_add<S, 1>(sums, own, b + j, left - j, at + j);
      }
    }
  }
}

} // namespace
} // namespace ingle
