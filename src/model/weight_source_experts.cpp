// The part of WeightSource that takes the matrices of experts.
#include <cstring>

#include <mlx/allocator.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "model/run_mlx.h"
#include "model/weight_source.h"

namespace ingle {
namespace {

// Requires: one of those that floats have.
FloatType to_float_type(TensorType type) {
  return type == TensorType::kF16 ? FloatType::kF16
      : type == TensorType::kBF16 ? FloatType::kBF16
                                  : FloatType::kF32;
}

mx::Dtype to_mlx(TensorType type) {
  return type == TensorType::kU32 ? mx::uint32
      : type == TensorType::kF16  ? mx::float16
      : type == TensorType::kBF16 ? mx::bfloat16
                                  : mx::float32;
}

// The tensors' bytes, one after the other.
mx::array copy_to_array(
    const std::vector<const TensorView*>& tensors,
    const mx::Shape& shape) {
  size_t bytes = 0;
  for (const TensorView* tensor : tensors) {
    bytes += tensor->bytes.size();
  }
  mx::allocator::Data data = mx::allocator::malloc(bytes);
  auto* to = static_cast<std::byte*>(data.buffer().raw_ptr());
  for (const TensorView* tensor : tensors) {
    std::memcpy(to, tensor->bytes.data(), tensor->bytes.size());
    to += tensor->bytes.size();
  }
  return mx::array(std::move(data), shape, to_mlx(tensors.front()->type));
}

// What one of so many experts has of the tensor.
const std::byte* part_of(const TensorView& tensor, int expert, int experts) {
  return tensor.bytes.data() +
      tensor.bytes.size() / static_cast<size_t>(experts) *
      static_cast<size_t>(expert);
}

mx::array to_f32(const mx::array& x) {
  mx::array floats = mx::astype(x, mx::float32);
  mx::eval(floats);
  return floats;
}

} // namespace

Result<ExpertMatrices> WeightSource::take_experts(
    const std::string& layer,
    const std::string& name,
    int experts,
    int rows,
    int columns) {
  const std::string stacked = layer + ".switch_mlp." + name;
  if (has(stacked + ".scales")) {
    const auto quantization = quantization_.of(stacked);
    if (!quantization) {
      return fail(
          stacked + ".scales",
          "is there, but config.json says that the module is not quantised");
    }
    return take_quantized_experts(
        stacked, experts, rows, columns, *quantization);
  }
  const auto each = [&](int expert) {
    return layer + ".experts." + std::to_string(expert) + "." + name +
        ".weight";
  };
  std::vector<const TensorView*> tensors;
  if (!has(each(0))) {
    INGLE_ASSIGN_OR_RETURN(
        tensors.emplace_back(),
        find_floats(stacked + ".weight", {experts, rows, columns}));
    return load_dense_experts(tensors, experts, rows, columns);
  }
  for (int expert = 0; expert < experts; ++expert) {
    INGLE_ASSIGN_OR_RETURN(
        tensors.emplace_back(), find_floats(each(expert), {rows, columns}));
    if (tensors.back()->type != tensors.front()->type) {
      return fail(
          each(expert),
          "has the type " + std::string(to_string(tensors.back()->type)) +
              " where that of expert 0 is " +
              std::string(to_string(tensors.front()->type)));
    }
  }
  return load_dense_experts(tensors, experts, rows, columns);
}

// tensors: one of all experts, or one of each.
Result<ExpertMatrices> WeightSource::load_dense_experts(
    const std::vector<const TensorView*>& tensors,
    int experts,
    int rows,
    int columns) {
  return run_mlx("load", [&] {
    ExpertMatrices matrices;
    if (uses_kernels(numerics_)) {
      for (int expert = 0; expert < experts; ++expert) {
        const bool is_alone = tensors.size() > 1;
        const TensorView& tensor =
            *tensors[is_alone ? static_cast<size_t>(expert) : 0];
        matrices.packed.push_back(pack_dense(
            *arena_,
            rows,
            columns,
            to_float_type(tensor.type),
            is_alone ? tensor.bytes.data() : part_of(tensor, expert, experts)));
      }
    } else {
      matrices.weight = copy_to_array(tensors, {experts, rows, columns});
      if (numerics_ != Numerics::kNative) {
        matrices.weight = to_f32(matrices.weight);
      }
    }
    for (const TensorView* tensor : tensors) {
      folder_.release(*tensor);
    }
    return matrices;
  });
}

Result<ExpertMatrices> WeightSource::take_quantized_experts(
    const std::string& path,
    int experts,
    int rows,
    int columns,
    const Quantization& quantization) {
  const auto [group_size, bits] = quantization;
  if (columns % group_size != 0) {
    return fail(
        path + ".weight",
        "has " + std::to_string(columns) +
            " columns, which is not a multiple of the group size " +
            std::to_string(group_size));
  }
  INGLE_ASSIGN_OR_RETURN(const TensorView* weight, find(path + ".weight"));
  if (weight->type != TensorType::kU32) {
    return fail(path + ".weight", "has to be of type U32, as it has scales");
  }
  const mx::Shape words = {experts, rows, columns / 32 * bits};
  const mx::Shape groups = {experts, rows, columns / group_size};
  INGLE_RETURN_IF_ERROR(check_shape(path + ".weight", *weight, words));
  INGLE_ASSIGN_OR_RETURN(
      const TensorView* scales, find_floats(path + ".scales", groups));
  INGLE_ASSIGN_OR_RETURN(
      const TensorView* biases, find_floats(path + ".biases", groups));
  if (scales->type != biases->type) {
    return fail(path + ".biases", "has to be of the type of the scales");
  }
  return run_mlx("load", [&] {
    ExpertMatrices matrices{.quantization = quantization};
    if (uses_kernels(numerics_)) {
      for (int expert = 0; expert < experts; ++expert) {
        matrices.packed.push_back(pack_quantized(
            *arena_,
            rows,
            columns,
            bits,
            group_size,
            to_float_type(scales->type),
            {part_of(*weight, expert, experts),
             part_of(*scales, expert, experts),
             part_of(*biases, expert, experts)}));
      }
    } else {
      matrices.weight = copy_to_array({weight}, words);
      matrices.scales = copy_to_array({scales}, groups);
      matrices.biases = copy_to_array({biases}, groups);
    }
    if (numerics_ == Numerics::kExact) {
      matrices.weight = to_f32(mx::dequantize(
          matrices.weight,
          to_f32(*matrices.scales),
          to_f32(*matrices.biases),
          group_size,
          bits));
      matrices.scales.reset();
      matrices.biases.reset();
    }
    for (const auto* part : {weight, scales, biases}) {
      folder_.release(*part);
    }
    return matrices;
  });
}

} // namespace ingle
