#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <mlx/fast.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

namespace ingle {
namespace {

mx::array number(double value) {
  return mx::array(static_cast<float>(value));
}

// Wavelengths are over 2π, of `dims` / 2 pairs, in f32 with MLX's own ops, as
// the oracle has them. These are theta^(i / over) for i = 0, 2, ... below
// `dims`.
mx::array plain_wavelengths(float theta, int dims, int over) {
  return mx::power(
      mx::array(theta),
      mx::divide(mx::arange(0, dims, 2, mx::float32), number(over)));
}

// Llama 3.1 stretches slow rotations by `factor`, keeps fast ones, and blends
// in between.
mx::array llama3_wavelengths(const RopeConfig& config, int dims) {
  const auto context = static_cast<float>(config.original_context);
  const mx::array base = plain_wavelengths(config.theta, dims, dims);
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
  return mx::where(medium, mx::divide(base, blend), stretched);
}

// YaRN (Peng et al., 2023): stretches those that turn less than beta_slow times
// in the original context, keeps those that turn more than beta_fast times, and
// blends in between, along a ramp over the dimensions.
mx::array yarn_wavelengths(const RopeConfig& config, int dims) {
  const auto dimension = [&](double turns) {
    const double length =
        config.original_context / (turns * 2 * std::numbers::pi);
    return dims * std::log(length) /
        (2 * std::log(static_cast<double>(config.theta)));
  };
  double first = dimension(config.beta_fast);
  double last = dimension(config.beta_slow);
  if (config.truncate) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, dims - 1.0);
  if (first == last) {
    last += 0.001; // as the paper's authors have it
  }
  const int pairs = dims / 2;
  const mx::array ramp = mx::clip(
      mx::divide(
          mx::subtract(mx::arange(0, pairs, 1, mx::float32), number(first)),
          number(last - first)),
      mx::array(0.0f),
      mx::array(1.0f));
  const mx::array kept = mx::subtract(mx::array(1.0f), ramp);
  const mx::array base = plain_wavelengths(config.theta, dims, dims);
  const mx::array stretched = mx::multiply(mx::array(config.factor), base);
  return mx::divide(
      mx::multiply(stretched, base),
      mx::add(
          mx::multiply(stretched, kept),
          mx::multiply(base, mx::subtract(mx::array(1.0f), kept))));
}

// LongRoPE (Ding et al., 2024): a factor for each pair.
mx::array long_wavelengths(const RopeConfig& config, int dims) {
  const mx::array factors(config.long_factors.data(), {dims / 2}, mx::float32);
  return mx::multiply(factors, plain_wavelengths(config.theta, dims, dims));
}

// Those that stand still have none that is finite.
mx::array proportional_wavelengths(const RopeConfig& config, int head_dim) {
  const int turned = config.rotated_dims(head_dim);
  const mx::array turning = mx::multiply(
      mx::array(config.factor),
      plain_wavelengths(config.theta, turned, head_dim));
  return mx::concatenate(
      {turning,
       mx::full(
           {(head_dim - turned) / 2},
           mx::array(std::numeric_limits<float>::infinity()))},
      0);
}

std::optional<mx::array> wavelengths_of(
    const RopeConfig& config,
    int head_dim) {
  const int dims = config.rotated_dims(head_dim);
  switch (config.kind) {
    case RopeKind::kDefault:
    case RopeKind::kLinear:
      break;
    case RopeKind::kLlama3:
      return llama3_wavelengths(config, dims);
    case RopeKind::kYarn:
      return yarn_wavelengths(config, dims);
    case RopeKind::kLongRope:
      return long_wavelengths(config, dims);
    case RopeKind::kProportional:
      return proportional_wavelengths(config, head_dim);
  }
  return std::nullopt;
}

// Of each dimension of a head; none where all are 1.
std::optional<mx::array>
amplitudes_of(float amplitude, int dims, int head_dim) {
  if (amplitude == 1) {
    return std::nullopt;
  }
  std::vector<float> all(static_cast<size_t>(head_dim), 1.0f);
  std::fill_n(all.begin(), dims, amplitude);
  return mx::array(all.data(), {head_dim}, mx::float32);
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

Rope::Rope(const RopeConfig& config, int head_dim)
    : dims_(
          config.kind == RopeKind::kProportional
              ? head_dim
              : config.rotated_dims(head_dim)),
      traditional_(config.traditional),
      theta_(config.theta),
      scale_(config.kind == RopeKind::kLinear ? 1 / config.factor : 1),
      amplitude_(config.amplitude),
      query_beta_(config.query_beta),
      query_context_(config.original_context),
      amplitudes_(amplitudes_of(config.amplitude, dims_, head_dim)),
      wavelengths_(wavelengths_of(config, head_dim)),
      frequencies_(frequencies_of(wavelengths_, theta_, dims_)) {}

float Rope::query_scale(int64_t position) const {
  const int64_t contexts = position / query_context_; // whole ones
  return 1 + query_beta_ * std::log(1 + static_cast<float>(contexts));
}

void Rope::add_angles(
    int64_t position,
    std::vector<float>& cosines,
    std::vector<float>& sines) const {
  const float at = static_cast<float>(position) * scale_;
  for (const float frequency : frequencies_) {
    cosines.push_back(amplitude_ * std::cos(at * frequency));
    sines.push_back(amplitude_ * std::sin(at * frequency));
  }
}

mx::array Rope::operator()(const mx::array& x, int64_t offset) const {
  return mx::fast::rope(
      amplitudes_ ? mx::multiply(x, mx::astype(*amplitudes_, x.dtype())) : x,
      dims_,
      traditional_,
      wavelengths_ ? std::nullopt : std::optional<float>(theta_),
      scale_,
      static_cast<int>(offset),
      wavelengths_);
}

} // namespace ingle
