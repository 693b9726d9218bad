// Tensors of files as MLX's arrays, and their types as MLX and the kernels know
// them. Part of weight_source.h.
//
// Threads: any; throw what MLX throws.
#pragma once

#include <span>

#include <mlx/array.h>

#include "kernels/matrix.h"
#include "weights/safetensors_reader.h"

namespace ingle {

namespace mx = mlx::core;

mx::Dtype to_mlx(TensorType type);

// Requires: one of those that floats have, or that of scales of MXFP4.
FloatType to_float_type(TensorType type);

// The bytes of tensors of one type, one after the other.
mx::array copy_to_array(
    std::span<const TensorView* const> tensors,
    const mx::Shape& shape);

} // namespace ingle
