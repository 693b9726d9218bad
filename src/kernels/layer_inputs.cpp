#include "kernels/layer_inputs.h"

#include <numbers>

#include "kernels/products.h"

namespace ingle {
namespace {

constexpr float kHalfRoot = 1 / std::numbers::sqrt2_v<float>;

// Of one token: what the projection gives and its row of the table.
void combine(
    const KernelContext& context,
    const LayerInputsView& view,
    const float* row,
    float* out) {
  const int all = view.table->columns;
  for (int i = 0; i < all; ++i) {
    out[i] *= view.projection_scale;
  }
  for (int i = 0; i < all; i += view.width) {
    context.set.rms_norm(
        out + i, view.norm.weight, view.norm.eps, view.width, out + i);
  }
  for (int i = 0; i < all; ++i) {
    out[i] = (out[i] + view.table_scale * row[i]) * kHalfRoot;
  }
}

} // namespace

void layer_inputs(
    KernelContext& context,
    const LayerInputsView& view,
    std::span<const int32_t> ids,
    const float* x,
    float* out) {
  const auto tokens = static_cast<int>(ids.size());
  const int hidden = view.projection.matrix->columns;
  const int all = view.table->columns;
  const int threads = context.pool.threads();
  ProductInputs inputs(context, tokens, {view.projection});
  context.projected.reserve(
      sizeof(float) * static_cast<size_t>(threads) * static_cast<size_t>(all));
  context.pool.run([&](int thread) {
    inputs.pack(thread, [&](int t, float*) {
      return x + static_cast<int64_t>(t) * hidden;
    });
    inputs.multiply(
        thread,
        {.matrix = view.projection.matrix,
         .bias = view.projection.bias,
         .out = out,
         .stride = all});
    context.pool.barrier(thread);
    float* row = reinterpret_cast<float*>(context.projected.data()) +
        static_cast<int64_t>(thread) * all;
    const Share share = share_of(tokens, thread, threads);
    for (int t = share.begin; t < share.end; ++t) {
      unpack_row(*view.table, ids[static_cast<size_t>(t)], row);
      combine(context, view, row, out + static_cast<int64_t>(t) * all);
    }
  });
}

} // namespace ingle
