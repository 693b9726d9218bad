#include "model/kernel_ops.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include <mlx/primitives.h>

#include "cache/block_kv_cache.h"

namespace ingle {
namespace {

// x may be null: there is no input.
using Compute = std::function<void(const float* x, float* out)>;

class KernelPrimitive final : public mx::UnaryPrimitive {
 public:
  KernelPrimitive(mx::Stream stream, CpuKernels& kernels, Compute compute)
      : mx::UnaryPrimitive(stream),
        kernels_(kernels),
        compute_(std::move(compute)) {}

  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    out.set_data(kernels_.outputs().take(out.nbytes()));
    compute_(
        inputs.empty() ? nullptr : inputs.front().data<float>(),
        out.data<float>());
  }
  void eval_gpu(const std::vector<mx::array>&, mx::array&) override {
    throw std::runtime_error("[ingle kernel] runs on a CPU only");
  }
  const char* name() const override {
    return "IngleKernel";
  }

 private:
  CpuKernels& kernels_;
  Compute compute_;
};

// An array [rows, columns] in f32.
mx::array computed(
    CpuKernels& kernels,
    std::vector<mx::array> inputs,
    int rows,
    int columns,
    Compute compute) {
  return mx::array(
      {rows, columns},
      mx::float32,
      std::make_shared<KernelPrimitive>(
          mx::default_stream(mx::Device::cpu), kernels, std::move(compute)),
      std::move(inputs));
}

LinearView view_of(const Linear& linear) {
  return {
      &linear.matrix.packed,
      linear.bias ? linear.bias->data<float>() : nullptr};
}

NormView view_of(const mx::array& norm, float eps) {
  return {norm.data<float>(), eps};
}

BlockKvCache& cache_of(const Row& row, size_t layer) {
  return static_cast<BlockKvCache&>(row.kv->layer(layer));
}

// Makes room for the step's tokens in each row's cache.
std::vector<AttentionRow> extend(const Step& step, size_t layer) {
  std::vector<AttentionRow> rows;
  for (const Row& row : step.rows()) {
    BlockKvCache& cache = cache_of(row, layer);
    const int64_t position = cache.offset() + cache.pending();
    const auto tokens = static_cast<int>(row.tokens.size());
    rows.push_back({tokens, position, cache.extend(tokens)});
  }
  return rows;
}

} // namespace

void evaluate_kernels(const std::vector<mx::array>& outputs) {
  std::vector<mx::array> stack = outputs;
  while (!stack.empty()) {
    mx::array array = stack.back();
    if (array.status() == mx::array::Status::available) {
      stack.pop_back();
      continue;
    }
    const auto waits = [](const mx::array& input) {
      return input.status() != mx::array::Status::available;
    };
    const auto input =
        std::find_if(array.inputs().begin(), array.inputs().end(), waits);
    if (input != array.inputs().end()) {
      stack.push_back(*input);
      continue;
    }
    std::vector<mx::array> made = {array};
    array.primitive().eval_cpu(array.inputs(), made);
    array.set_status(mx::array::Status::available);
    array.detach();
  }
}

mx::array kernel_embed(
    CpuKernels& kernels,
    std::vector<TokenId> ids,
    const Matrix& embedding) {
  const auto count = static_cast<int>(ids.size());
  return computed(
      kernels,
      {},
      count,
      embedding.packed.columns,
      [&kernels, ids = std::move(ids), &table = embedding.packed](
          const float*, float* out) {
        embed(kernels.context(), table, ids, out);
      });
}

mx::array kernel_attend_and_add(
    Step& step,
    const mx::array& x,
    const AttentionWeights& weights,
    const AttentionShape& shape,
    const Rope& rope,
    float eps,
    size_t layer) {
  AttentionView view{
      .norm = view_of(weights.norm, eps),
      .q = view_of(weights.q),
      .k = view_of(weights.k),
      .v = view_of(weights.v),
      .o = view_of(weights.o),
      .heads = shape.heads,
      .kv_heads = shape.kv_heads,
      .head_dim = shape.head_dim,
      .scale = shape.scale,
      .rope_dims = rope.dims(),
      .traditional_rope = rope.is_traditional()};
  mx::array out = computed(
      *step.kernels(),
      {x},
      x.shape(0),
      x.shape(1),
      [&kernels = *step.kernels(),
       view,
       angles = step.angles(rope),
       rows = extend(step, layer)](const float* in, float* result) mutable {
        view.cosines = angles->cosines.data();
        view.sines = angles->sines.data();
        attend_and_add(kernels.context(), view, rows, in, result);
      });
  for (const Row& row : step.rows()) {
    cache_of(row, layer).set_writer(out);
  }
  return out;
}

mx::array kernel_mlp_and_add(
    CpuKernels& kernels,
    const mx::array& x,
    const MlpWeights& weights,
    float eps) {
  const MlpView view{
      .norm = view_of(weights.norm, eps),
      .gate = view_of(weights.gate),
      .up = view_of(weights.up),
      .down = view_of(weights.down)};
  return computed(
      kernels,
      {x},
      x.shape(0),
      x.shape(1),
      [&kernels, view, tokens = x.shape(0)](const float* in, float* out) {
        mlp_and_add(kernels.context(), view, tokens, in, out);
      });
}

mx::array kernel_norm_and_head(
    CpuKernels& kernels,
    std::vector<int> tokens,
    const mx::array& x,
    const mx::array& norm,
    const Matrix& head,
    float eps) {
  const auto count = static_cast<int>(tokens.size());
  return computed(
      kernels,
      {x},
      count,
      head.packed.rows,
      [&kernels,
       tokens = std::move(tokens),
       norm_view = view_of(norm, eps),
       head_view = LinearView{&head.packed, nullptr}](
          const float* in, float* out) {
        norm_and_head(kernels.context(), norm_view, head_view, tokens, in, out);
      });
}

} // namespace ingle
