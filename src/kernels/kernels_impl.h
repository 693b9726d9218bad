// The kernels, written once: the table of one instruction set.
#pragma once

#include "kernels/attention_impl.h"
#include "kernels/gated_delta_impl.h"
#include "kernels/kernel_set.h"
#include "kernels/kv_quantization_impl.h"
#include "kernels/logits_impl.h"
#include "kernels/low_rank_impl.h"
#include "kernels/products_impl.h"

namespace ingle {
namespace {

template <class S>
constexpr KernelSet make_kernel_set(Isa isa) {
  static_assert(S::kQueryRows <= kMaxQueryRows && S::kTileTokens <= 8);
  return {
      isa,
      S::kTileTokens,
      S::kPanels,
      S::kQueryRows,
      rms_norm<S>,
      layer_norm<S>,
      pack_tile<S>,
      multiply<S>,
      activate_gate<S>,
      soften_all<S>,
      rotate<S>,
      pack_query<S>,
      put<S>,
      widen<S>,
      attend_block<S>,
      merge<S>,
      finish<S>,
      largest_of<S>,
      exp_sum<S>,
      exp_sums<S>,
      find_between<S>,
      convolve<S>,
      scale_to_length<S>,
      delta_rule<S>,
      norm_and_gate<S>,
      gate_by_sigmoid<S>,
      low_rank_in<S>,
      low_rank_out<S>};
}

} // namespace
} // namespace ingle
