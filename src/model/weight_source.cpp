#include "model/weight_source.h"

#include <cstring>

#include <mlx/allocator.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "base/log.h"
#include "model/run_mlx.h"

namespace ingle {
namespace {

std::string describe(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::vector<int64_t> to_extents(const mx::Shape& shape) {
  return {shape.begin(), shape.end()};
}

mx::Dtype to_mlx(TensorType type) {
  switch (type) {
    case TensorType::kBool:
      return mx::bool_;
    case TensorType::kU8:
      return mx::uint8;
    case TensorType::kI8:
      return mx::int8;
    case TensorType::kU16:
      return mx::uint16;
    case TensorType::kI16:
      return mx::int16;
    case TensorType::kF16:
      return mx::float16;
    case TensorType::kBF16:
      return mx::bfloat16;
    case TensorType::kU32:
      return mx::uint32;
    case TensorType::kI32:
      return mx::int32;
    case TensorType::kF32:
      return mx::float32;
    case TensorType::kU64:
      return mx::uint64;
    case TensorType::kI64:
      return mx::int64;
    case TensorType::kF64:
      return mx::float64;
  }
  return mx::float32;
}

bool is_floating(TensorType type) {
  return type == TensorType::kF16 || type == TensorType::kBF16 ||
      type == TensorType::kF32;
}

// Requires: is_floating(type).
FloatType to_float_type(TensorType type) {
  return type == TensorType::kF16 ? FloatType::kF16
      : type == TensorType::kBF16 ? FloatType::kBF16
                                  : FloatType::kF32;
}

mx::array copy_to_array(const TensorView& tensor, const mx::Shape& shape) {
  mx::allocator::Data data = mx::allocator::malloc(tensor.bytes.size());
  std::memcpy(
      data.buffer().raw_ptr(), tensor.bytes.data(), tensor.bytes.size());
  return mx::array(std::move(data), shape, to_mlx(tensor.type));
}

} // namespace

Status WeightSource::fail(const std::string& name, const std::string& what)
    const {
  const auto it = folder_.tensors().find(name);
  const std::string& file =
      it == folder_.tensors().end() ? origin_ : it->second.file;
  return Status::corruption(file + ": tensor " + quote_name(name) + " " + what);
}

Result<const TensorView*> WeightSource::find(const std::string& name) {
  if (stop_.stop_requested()) {
    return Status::cancelled("stopped while the model was loading");
  }
  const auto it = folder_.tensors().find(name);
  if (it == folder_.tensors().end()) {
    return fail(name, "is missing from the weights");
  }
  if (used_.insert(name).second) {
    if (on_progress_) { // what was found before is loaded by now
      on_progress_(found_bytes_, total_bytes_);
    }
    found_bytes_ += it->second.bytes.size();
  }
  return &it->second;
}

std::optional<std::vector<int64_t>> WeightSource::shape_of(
    const std::string& name) const {
  const auto it = folder_.tensors().find(name);
  return it == folder_.tensors().end() ? std::nullopt
                                       : std::optional(it->second.shape);
}

Status WeightSource::check_shape(
    const std::string& name,
    const TensorView& tensor,
    const mx::Shape& shape) {
  if (tensor.shape == to_extents(shape)) {
    return Status::ok();
  }
  return fail(
      name,
      "has the shape " + describe(tensor.shape) +
          " where the config asks for " + describe(to_extents(shape)));
}

Result<const TensorView*> WeightSource::find_floats(
    const std::string& name,
    const mx::Shape& shape) {
  INGLE_ASSIGN_OR_RETURN(const TensorView* tensor, find(name));
  if (!is_floating(tensor->type)) {
    return fail(
        name,
        "has the type " + std::string(to_string(tensor->type)) +
            " where F16, BF16 or F32 is expected");
  }
  INGLE_RETURN_IF_ERROR(check_shape(name, *tensor, shape));
  return tensor;
}

Result<mx::array> WeightSource::take(
    const std::string& name,
    const mx::Shape& shape) {
  INGLE_ASSIGN_OR_RETURN(const TensorView* tensor, find_floats(name, shape));
  return run_mlx("load", [&] {
    mx::array loaded = copy_to_array(*tensor, shape);
    folder_.release(*tensor);
    if (numerics_ != Numerics::kNative) {
      loaded = mx::astype(loaded, mx::float32);
      mx::eval(loaded);
    }
    return loaded;
  });
}

Result<Matrix>
WeightSource::take_matrix(const std::string& path, int rows, int columns) {
  if (!has(path + ".scales")) {
    return take_dense(path, rows, columns);
  }
  const auto quantization = quantization_.of(path);
  if (!quantization) {
    return fail(
        path + ".scales",
        "is there, but config.json says that the module is not quantised");
  }
  return take_quantized(path, rows, columns, *quantization);
}

Result<Matrix>
WeightSource::take_dense(const std::string& path, int rows, int columns) {
  const std::string name = path + ".weight";
  if (!uses_kernels(numerics_)) {
    INGLE_ASSIGN_OR_RETURN(mx::array weight, take(name, {rows, columns}));
    return Matrix{.weight = std::move(weight)};
  }
  INGLE_ASSIGN_OR_RETURN(
      const TensorView* tensor, find_floats(name, {rows, columns}));
  return run_mlx("load", [&] {
    Matrix matrix{
        .packed = pack_dense(
            *arena_,
            rows,
            columns,
            to_float_type(tensor->type),
            tensor->bytes.data())};
    folder_.release(*tensor);
    return matrix;
  });
}

Result<WeightSource::Quantized> WeightSource::find_quantized(
    const std::string& path,
    int rows,
    int columns,
    const Quantization& quantization) {
  if (columns % quantization.group_size != 0) {
    return fail(
        path + ".weight",
        "has " + std::to_string(columns) +
            " columns, which is not a multiple of the group size " +
            std::to_string(quantization.group_size));
  }
  Quantized found;
  INGLE_ASSIGN_OR_RETURN(found.weight, find(path + ".weight"));
  if (found.weight->type != TensorType::kU32) {
    return fail(path + ".weight", "has to be of type U32, as it has scales");
  }
  INGLE_RETURN_IF_ERROR(check_shape(
      path + ".weight",
      *found.weight,
      {rows, columns / 32 * quantization.bits}));
  const mx::Shape groups = {rows, columns / quantization.group_size};
  INGLE_ASSIGN_OR_RETURN(found.scales, find_floats(path + ".scales", groups));
  INGLE_ASSIGN_OR_RETURN(found.biases, find_floats(path + ".biases", groups));
  return found;
}

Result<Matrix> WeightSource::take_quantized(
    const std::string& path,
    int rows,
    int columns,
    const Quantization& quantization) {
  INGLE_ASSIGN_OR_RETURN(
      const Quantized found, find_quantized(path, rows, columns, quantization));
  const auto [group_size, bits] = quantization;
  if (uses_kernels(numerics_) && can_pack(columns, bits, group_size) &&
      found.scales->type == found.biases->type) {
    return run_mlx("load", [&] {
      Matrix matrix{
          .packed = pack_quantized(
              *arena_,
              rows,
              columns,
              bits,
              group_size,
              to_float_type(found.scales->type),
              {found.weight->bytes.data(),
               found.scales->bytes.data(),
               found.biases->bytes.data()})};
      for (const auto* part : {found.weight, found.scales, found.biases}) {
        folder_.release(*part);
      }
      return matrix;
    });
  }
  const mx::Shape groups = {rows, columns / group_size};
  INGLE_ASSIGN_OR_RETURN(mx::array scales, take(path + ".scales", groups));
  INGLE_ASSIGN_OR_RETURN(mx::array biases, take(path + ".biases", groups));
  return run_mlx("load", [&] {
    mx::array weight =
        copy_to_array(*found.weight, {rows, columns / 32 * bits});
    folder_.release(*found.weight);
    if (numerics_ == Numerics::kNative) {
      return Matrix{
          .weight = std::move(weight),
          .scales = std::move(scales),
          .biases = std::move(biases),
          .quantization = quantization};
    }
    mx::array values = mx::dequantize(weight, scales, biases, group_size, bits);
    mx::eval(values);
    if (!uses_kernels(numerics_)) {
      return Matrix{.weight = std::move(values)};
    }
    return Matrix{
        .packed = pack_dense(
            *arena_,
            rows,
            columns,
            FloatType::kF32,
            reinterpret_cast<const std::byte*>(values.data<float>()))};
  });
}

Result<Linear> WeightSource::take_linear(
    const std::string& path,
    int in,
    int out,
    bool with_bias) {
  INGLE_ASSIGN_OR_RETURN(Matrix matrix, take_matrix(path, out, in));
  if (!with_bias) {
    return Linear{std::move(matrix), std::nullopt};
  }
  INGLE_ASSIGN_OR_RETURN(mx::array bias, take(path + ".bias", {out}));
  return Linear{std::move(matrix), std::move(bias)};
}

void WeightSource::drop(const std::string& name) {
  if (has(name) && used_.insert(name).second) {
    log_info(origin_ + ": tensor " + quote_name(name) + " is not needed");
  }
}

void WeightSource::drop_all(const std::string& prefix) {
  size_t count = 0;
  for (const auto& [name, tensor] : folder_.tensors()) {
    count += name.starts_with(prefix) && used_.insert(name).second ? 1 : 0;
  }
  if (count > 0) {
    log_info(
        origin_ + ": " + std::to_string(count) + " tensors below " +
        quote_name(prefix) + " are not needed");
  }
}

Status WeightSource::check_all_used() const {
  constexpr size_t kShown = 3;
  std::string names;
  std::string file;
  size_t unused = 0;
  for (const auto& [name, tensor] : folder_.tensors()) {
    if (used_.count(name) == 0 && ++unused <= kShown) {
      names += (names.empty() ? "" : ", ") + quote_name(name);
      file = file.empty() ? tensor.file : file;
    }
  }
  if (unused == 0) {
    return Status::ok();
  }
  return Status::corruption(
      file + ": " + std::to_string(unused) +
      " tensors are not part of this architecture: " + names +
      (unused > kShown ? ", ..." : ""));
}

} // namespace ingle
