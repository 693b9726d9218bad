// How an op runs on the CPU kernels: at once, or as a primitive of MLX's. See
// kernel_ops.h.
//
// Private to the ops' sources: includes MLX's backend.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <mlx/backend/cpu/encoder.h>
#include <mlx/ops.h>
#include <mlx/primitives.h>

#include "kernels/layer.h"
#include "model/cpu_kernels.h"
#include "model/linear.h"

namespace ingle {

// Compute: void(const float* x, float* out).
template <class Compute>
class KernelPrimitive final : public mx::UnaryPrimitive {
 public:
  KernelPrimitive(mx::Stream stream, Compute compute)
      : mx::UnaryPrimitive(stream),
        compute_(std::make_shared<Compute>(std::move(compute))) {}

  // MLX's ops only queue their work here, on a thread of their stream: so does
  // this one, and holds what it needs beyond the primitive's own life.
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    out.set_data(mx::allocator::malloc(out.nbytes()));
    mx::cpu::get_command_encoder(stream()).dispatch(
        [compute = compute_,
         x = inputs.front().data<float>(),
         data = out.data<float>()] { (*compute)(x, data); });
  }
  void eval_gpu(const std::vector<mx::array>&, mx::array&) override {
    throw std::runtime_error("[ingle kernel] runs on a CPU only");
  }
  const char* name() const override {
    return "IngleKernel";
  }

 private:
  std::shared_ptr<Compute> compute_;
};

// An array [rows, columns] in f32, computed at once.
template <class Compute>
mx::array
computed(CpuKernels& kernels, int rows, int columns, Compute&& compute) {
  mx::array out = kernels.output(rows, columns);
  kernels.evaluate([&] { compute(out.data<float>()); });
  return out;
}

inline bool is_plain(const mx::array& x) {
  return x.dtype() == mx::float32 && x.flags().row_contiguous;
}

inline bool is_ready(const mx::array& x) {
  return x.is_available() && is_plain(x);
}

// The same from x, when it is evaluated.
template <class Compute>
mx::array
computed_later(const mx::array& x, int rows, int columns, Compute compute) {
  return mx::array(
      {rows, columns},
      mx::float32,
      std::make_shared<KernelPrimitive<Compute>>(
          mx::default_stream(mx::Device::cpu), std::move(compute)),
      {mx::contiguous(mx::astype(x, mx::float32))});
}

// At once where x is there as the kernels read it.
template <class Compute>
mx::array computed_from(
    const mx::array& x,
    CpuKernels& kernels,
    int rows,
    int columns,
    Compute compute) {
  return is_ready(x) ? computed(
                           kernels,
                           rows,
                           columns,
                           [&](float* out) { compute(x.data<float>(), out); })
                     : computed_later(x, rows, columns, std::move(compute));
}

inline LinearView linear_view(const Linear& linear) {
  return {
      &linear.matrix.packed,
      linear.bias ? linear.bias->data<float>() : nullptr};
}

inline LinearView linear_view(const std::optional<Linear>& linear) {
  return linear ? linear_view(*linear) : LinearView{};
}

inline NormView norm_view(const mx::array& norm, float eps) {
  return {norm.data<float>(), eps};
}
inline NormView norm_view(const std::optional<mx::array>& norm, float eps) {
  return norm ? norm_view(*norm, eps) : NormView{};
}

} // namespace ingle
