#include "model/rope.h"

#include <cmath>
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

// As MLX's own form has them, in f32.
std::vector<float> frequencies_of(
    const std::optional<mx::array>& wavelengths,
    float theta,
    int dims) {
  const int half = dims / 2;
  const mx::array exponents = mx::multiply(
      mx::arange(0, -half, -1, mx::float32),
      mx::array(std::log(theta) / static_cast<float>(half)));
  mx::array frequencies =
      wavelengths ? mx::reciprocal(*wavelengths) : mx::exp(exponents);
  mx::eval(frequencies);
  const float* data = frequencies.data<float>();
  return {data, data + half};
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
  frequencies_ = frequencies_of(wavelengths_, theta_, dims);
}

void Rope::add_angles(
    int64_t position,
    std::vector<float>& cosines,
    std::vector<float>& sines) const {
  const float at = static_cast<float>(position) * scale_;
  for (const float frequency : frequencies_) {
    cosines.push_back(std::cos(at * frequency));
    sines.push_back(std::sin(at * frequency));
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
