// Short convolutions, the delta rule, and gates: see kernel_set.h.
#pragma once

#include "kernels/kernel_set.h"
#include "kernels/lanes.h"
#include "kernels/products_impl.h"

namespace ingle {
namespace {

static_assert(kDeltaPanel == kLanes);

template <class S>
void convolve(
    const float* const* rows,
    const float* weights,
    int64_t stride,
    int taps,
    int n,
    float* out) {
  for (int i = 0; i < n; i += kLanes) {
    const int count = n - i;
    auto sum = S::mul(
        load_some<S>(rows[0] + i, count), load_some<S>(weights + i, count));
    for (int j = 1; j < taps; ++j) {
      sum = S::fma(
          load_some<S>(rows[j] + i, count),
          load_some<S>(weights + j * stride + i, count),
          sum);
    }
    store_some<S>(out + i, activate<S>(Activation::kSilu, sum), count);
  }
}

template <class S>
void scale_to_length(float* x, int n, float eps, float length) {
  auto squares = S::set1(0);
  for (int i = 0; i < n; i += kLanes) {
    const auto v = load_some<S>(x + i, n - i);
    squares = S::fma(v, v, squares);
  }
  const auto scale = S::set1(length / __builtin_sqrtf(S::sum(squares) + eps));
  for (int i = 0; i < n; i += kLanes) {
    store_some<S>(x + i, S::mul(load_some<S>(x + i, n - i), scale), n - i);
  }
}

// One token's part of P panels: S in `before`, which may be `after`.
template <class S, int P>
INGLE_INLINE void delta_token(
    const DeltaRun& run,
    int token,
    int panel,
    const float* before,
    float* after) {
  const size_t panel_floats = static_cast<size_t>(run.key_dim) * kLanes;
  const float* key = run.keys + token * int64_t{run.key_dim};
  const float* query = run.queries + token * int64_t{run.key_dim};
  const auto decay = S::set1(run.decays[token]);
  typename S::F found[P];
  unroll<P>([&](auto p)
                __attribute__((always_inline)) { found[p] = S::set1(0); });
  for (int i = 0; i < run.key_dim; ++i) {
    const auto k = S::set1(key[i]);
    unroll<P>([&](auto p) __attribute__((always_inline)) {
      const float* at = before + p * panel_floats + int64_t{i} * kLanes;
      found[p] = S::fma(S::load(at), k, found[p]);
    });
  }
  // Of the last panel; those before it are full.
  const int left = run.value_dim - (panel + P - 1) * kLanes;
  const float* value =
      run.values + token * int64_t{run.value_dim} + int64_t{panel} * kLanes;
  typename S::F change[P];
  typename S::F read[P];
  unroll<P>([&](auto p) __attribute__((always_inline)) {
    const auto v = load_some<S>(value + p * kLanes, p + 1 < P ? kLanes : left);
    change[p] =
        S::mul(S::sub(v, S::mul(decay, found[p])), S::set1(run.betas[token]));
    read[p] = S::set1(0);
  });
  for (int i = 0; i < run.key_dim; ++i) {
    const auto k = S::set1(key[i]);
    const auto q = S::set1(query[i]);
    unroll<P>([&](auto p) __attribute__((always_inline)) {
      const size_t at = p * panel_floats + static_cast<size_t>(i) * kLanes;
      const auto s = S::fma(change[p], k, S::mul(S::load(before + at), decay));
      S::store(after + at, s);
      read[p] = S::fma(s, q, read[p]);
    });
  }
  float* out = run.out + token * run.out_stride + int64_t{panel} * kLanes;
  unroll<P>([&](auto p) __attribute__((always_inline)) {
    store_some<S>(out + p * kLanes, read[p], p + 1 < P ? kLanes : left);
  });
}

// All tokens, while the panels are near.
template <class S, int P>
void delta_panels(const DeltaRun& run, int panel) {
  const size_t at =
      static_cast<size_t>(panel) * static_cast<size_t>(run.key_dim) * kLanes;
  for (int t = 0; t < run.tokens; ++t) {
    const float* before = t == 0 ? run.before : run.after;
    delta_token<S, P>(run, t, panel, before + at, run.after + at);
  }
}

template <class S>
void delta_rule(const DeltaRun& run) {
  constexpr int kTogether = S::kDeltaPanels;
  const int panels = (run.value_dim + kLanes - 1) / kLanes;
  int panel = 0;
  for (; panel + kTogether <= panels; panel += kTogether) {
    delta_panels<S, kTogether>(run, panel);
  }
  for (; panel < panels; ++panel) {
    delta_panels<S, 1>(run, panel);
  }
}

template <class S>
void norm_and_gate(
    const float* x,
    const float* weight,
    float eps,
    const float* gate,
    int n,
    float* out) {
  rms_norm<S>(x, weight, eps, n, out);
  for (int i = 0; i < n; i += kLanes) {
    const int count = n - i;
    const auto opened =
        activate<S>(Activation::kSilu, load_some<S>(gate + i, count));
    store_some<S>(out + i, S::mul(opened, load_some<S>(out + i, count)), count);
  }
}

template <class S>
void gate_by_sigmoid(float* x, const float* gate, int n) {
  for (int i = 0; i < n; i += kLanes) {
    const int count = n - i;
    const auto opened = sigmoid<S>(load_some<S>(gate + i, count));
    store_some<S>(x + i, S::mul(load_some<S>(x + i, count), opened), count);
  }
}

} // namespace
} // namespace ingle
