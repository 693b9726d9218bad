#include "model/rope.h"

#include <numbers>

#include <mlx/fast.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

namespace ingle {
namespace {

// Llama 3.1 stretches slow rotations by `factor`, keeps fast ones, and blends
// in between. In f32 with MLX's own ops, as the oracle does.
mx::array llama3_wavelengths(const RopeConfig& config, int dims) {
  const auto context = static_cast<float>(config.original_context);
  const mx::array exponents = mx::divide(
      mx::arange(0, dims, 2, mx::float32), mx::array(static_cast<float>(dims)));
  const mx::array base = mx::power(mx::array(config.theta), exponents);
  const mx::array length =
      mx::multiply(base, mx::array(2 * std::numbers::pi_v<float>));

  const mx::array slow =
      mx::greater(length, mx::array(context / config.low_freq_factor));
  const mx::array medium = mx::logical_and(
      mx::greater(length, mx::array(context / config.high_freq_factor)),
      mx::less(length, mx::array(context / config.low_freq_factor)));
  const mx::array smooth = mx::divide(
      mx::subtract(
          mx::divide(mx::array(context), length),
          mx::array(config.low_freq_factor)),
      mx::array(config.high_freq_factor - config.low_freq_factor));
  const mx::array blend = mx::add(
      mx::divide(
          mx::subtract(mx::array(1.0f), smooth), mx::array(config.factor)),
      smooth);
  const mx::array stretched =
      mx::where(slow, mx::multiply(base, mx::array(config.factor)), base);
  mx::array wavelengths = mx::where(medium, mx::divide(base, blend), stretched);
  mx::eval(wavelengths);
  return wavelengths;
}

} // namespace

Rope::Rope(const RopeConfig& config, int dims)
    : dims_(dims), traditional_(config.traditional), theta_(config.theta) {
  switch (config.kind) {
    case RopeKind::kDefault:
      break;
    case RopeKind::kLinear:
      scale_ = 1 / config.factor;
      break;
    case RopeKind::kLlama3:
      wavelengths_ = llama3_wavelengths(config, dims);
      break;
  }
}

mx::array Rope::operator()(const mx::array& x, int64_t offset) const {
  return mx::fast::rope(
      x,
      dims_,
      traditional_,
      wavelengths_ ? std::nullopt : std::optional<float>(theta_),
      scale_,
      static_cast<int>(offset),
      wavelengths_);
}

} // namespace ingle
