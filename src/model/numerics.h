// How numbers are held and multiplied.
#pragma once

namespace ingle {

enum class Numerics {
  // MLX's own ops in f32, weights dequantised to f32 at load: the truth that
  // the other modes are held against.
  kExact,
  // Near-exact CPU kernels: activations as two int8 planes, about 15 bits.
  kNear,
  // Fast CPU kernels: activations as one int8 plane, but for those of the head.
  kFast,
  // MLX's own ops in the weights' types, quantised weights as they are: for a
  // GPU. Not run on this project's machines.
  kNative,
};

// What the default device calls for: kNative on a GPU, kNear on a CPU.
Numerics default_numerics();

// True iff src/kernels computes.
constexpr bool uses_kernels(Numerics numerics) {
  return numerics == Numerics::kNear || numerics == Numerics::kFast;
}

} // namespace ingle
