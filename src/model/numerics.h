// How numbers are held and multiplied.
#pragma once

namespace ingle {

enum class Numerics {
  // MLX's own ops in f32, weights dequantised to f32 at load: the truth that
  // the other modes are held against. What a CPU uses until the kernels exist
  // (MLX's quantised matmul is wrong by 4e-2 there in bf16).
  kExact,
  // Near-exact CPU kernels: activations as two int8 planes, about 15 bits.
  kNear,
  // Fast CPU kernels: activations as one int8 plane.
  kFast,
  // MLX's own ops in the weights' types, quantised weights as they are: for a
  // GPU. Not run on this project's machines.
  kNative,
};

// What the default device calls for: kNative on a GPU, kExact on a CPU.
Numerics default_numerics();

} // namespace ingle
