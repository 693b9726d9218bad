#include "kernels/layer.h"

#include "kernels/attention.h"
#include "kernels/products.h"

namespace ingle {
namespace {

// Token t of [T, columns].
auto row_of(const float* x, int columns) {
  return [=](int t, float*) { return x + static_cast<int64_t>(t) * columns; };
}

auto normed_row_of(
    const KernelContext& context,
    const NormView& norm,
    const float* x,
    int columns) {
  return [=, &context](int t, float* row) -> const float* {
    context.set.rms_norm(
        x + static_cast<int64_t>(t) * columns,
        norm.weight,
        norm.eps,
        columns,
        row);
    return row;
  };
}

} // namespace

void embed(
    KernelContext& context,
    const PackedMatrix& table,
    std::span<const int32_t> ids,
    float* out) {
  const auto count = static_cast<int>(ids.size());
  context.pool.run([&](int thread) {
    const Share share = share_of(count, thread, context.pool.threads());
    for (int t = share.begin; t < share.end; ++t) {
      unpack_row(
          table,
          ids[static_cast<size_t>(t)],
          out + static_cast<int64_t>(t) * table.columns);
    }
  });
}

void attend_and_add(
    KernelContext& context,
    const AttentionView& view,
    std::span<const AttentionRow> rows,
    const float* x,
    float* out) {
  Attention attention(context, view, rows);
  const int tokens = attention.tokens();
  const int hidden = view.q.matrix->columns;
  ProductInputs normed(context, tokens, {view.q, view.k, view.v});
  ProductInputs attended(context, tokens, {view.o});
  context.pool.run([&](int thread) {
    normed.pack(thread, normed_row_of(context, view.norm, x, hidden));
    attention.project(thread, normed);
    context.pool.barrier(thread);
    attention.rotate_and_put(thread);
    context.pool.barrier(thread);
    attention.attend(thread);
    context.pool.barrier(thread);
    attended.pack(thread, [&](int t, float* scratch) {
      return attention.attended(thread, t, scratch);
    });
    attended.multiply(
        thread,
        {.matrix = view.o.matrix,
         .bias = view.o.bias,
         .addend = x,
         .out = out,
         .stride = view.o.matrix->rows});
  });
}

void mlp_and_add(
    KernelContext& context,
    const MlpView& view,
    int tokens,
    const float* x,
    float* out) {
  const int hidden = view.gate.matrix->columns;
  const int inner = view.gate.matrix->rows;
  context.projected.reserve(
      sizeof(float) * static_cast<size_t>(tokens) * static_cast<size_t>(inner));
  const auto activated = reinterpret_cast<float*>(context.projected.data());
  ProductInputs normed(context, tokens, {view.gate, view.up});
  ProductInputs inputs(context, tokens, {view.down});
  context.pool.run([&](int thread) {
    normed.pack(thread, normed_row_of(context, view.norm, x, hidden));
    normed.multiply(
        thread,
        {.matrix = view.gate.matrix,
         .bias = view.gate.bias,
         .up = view.up.matrix,
         .up_bias = view.up.bias,
         .activation = view.activation,
         .out = activated,
         .stride = inner});
    context.pool.barrier(thread);
    inputs.pack(thread, row_of(activated, inner));
    inputs.multiply(
        thread,
        {.matrix = view.down.matrix,
         .bias = view.down.bias,
         .addend = x,
         .out = out,
         .stride = hidden});
  });
}

void norm_and_head(
    KernelContext& context,
    const NormView& norm,
    const LinearView& head,
    std::span<const int> tokens,
    const float* x,
    float* out) {
  const int hidden = head.matrix->columns;
  ProductInputs normed(
      context, Inputs::kTwoPlanes, static_cast<int>(tokens.size()), {head});
  context.pool.run([&](int thread) {
    const auto row = normed_row_of(context, norm, x, hidden);
    normed.pack(thread, [&](int i, float* scratch) {
      return row(tokens[static_cast<size_t>(i)], scratch);
    });
    normed.multiply(
        thread,
        {.matrix = head.matrix,
         .bias = head.bias,
         .out = out,
         .stride = head.matrix->rows});
  });
}

} // namespace ingle
