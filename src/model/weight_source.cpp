#include "model/weight_source.h"

#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "base/log.h"
#include "model/run_mlx.h"
#include "model/tensor_arrays.h"

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

mx::Shape to_shape(const std::vector<int64_t>& extents) {
  mx::Shape shape;
  for (const int64_t extent : extents) {
    shape.push_back(static_cast<int>(extent));
  }
  return shape;
}

// Some rows of a tensor, one after the other: where they are not so there, in
// `copy`.
TensorView rows_of(
    const TensorView& tensor,
    const std::vector<RowRange>& ranges,
    std::vector<std::byte>& copy) {
  const auto row = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
  const auto bytes_of = [&](const RowRange& range) {
    return tensor.bytes.subspan(
        static_cast<size_t>(range.begin) * row,
        static_cast<size_t>(range.count) * row);
  };
  TensorView rows = tensor;
  rows.shape[0] = 0;
  for (const RowRange& range : ranges) {
    rows.shape[0] += range.count;
  }
  if (ranges.size() == 1) {
    rows.bytes = bytes_of(ranges.front());
    return rows;
  }
  copy.clear();
  for (const RowRange& range : ranges) {
    const auto bytes = bytes_of(range);
    copy.insert(copy.end(), bytes.begin(), bytes.end());
  }
  rows.bytes = copy;
  return rows;
}

bool is_floating(TensorType type) {
  return type == TensorType::kF16 || type == TensorType::kBF16 ||
      type == TensorType::kF32;
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

mx::array WeightSource::load_floats(const TensorView& tensor) const {
  if (only_checks_) {
    return mx::zeros(to_shape(tensor.shape), mx::float32);
  }
  const TensorView* const whole[] = {&tensor};
  mx::array loaded = copy_to_array(whole, to_shape(tensor.shape));
  if (numerics_ != Numerics::kNative && is_floating(tensor.type)) {
    loaded = mx::astype(loaded, mx::float32);
    mx::eval(loaded);
  }
  return loaded;
}

Result<mx::array> WeightSource::take(
    const std::string& name,
    const mx::Shape& shape) {
  INGLE_ASSIGN_OR_RETURN(const TensorView* tensor, find_floats(name, shape));
  return run_mlx("load", [&] {
    mx::array loaded = load_floats(*tensor);
    folder_.release(*tensor);
    return loaded;
  });
}

Result<WeightSource::Parts>
WeightSource::find_matrix(const std::string& path, int rows, int columns) {
  if (!has(path + ".scales")) {
    INGLE_ASSIGN_OR_RETURN(
        const TensorView* weight,
        find_floats(path + ".weight", {rows, columns}));
    return Parts{*weight};
  }
  INGLE_ASSIGN_OR_RETURN(
      const Quantization quantization, quantization_of(path));
  INGLE_ASSIGN_OR_RETURN(
      const QuantizedTensors found,
      find_quantized(
          path,
          [rows](int width) { return mx::Shape{rows, width}; },
          columns,
          quantization));
  return Parts{
      *found.weight,
      *found.scales,
      found.biases == nullptr ? TensorView{} : *found.biases,
      quantization};
}

Status WeightSource::find_groups(
    const std::string& path,
    const mx::Shape& shape,
    QuantizationMode mode,
    QuantizedTensors& found) {
  if (mode != QuantizationMode::kMxfp4) {
    INGLE_ASSIGN_OR_RETURN(found.scales, find_floats(path + ".scales", shape));
    INGLE_ASSIGN_OR_RETURN(found.biases, find_floats(path + ".biases", shape));
    return Status::ok();
  }
  INGLE_ASSIGN_OR_RETURN(found.scales, find(path + ".scales"));
  if (found.scales->type != TensorType::kU8) {
    return fail(path + ".scales", "has to be of type U8, as it is of MXFP4");
  }
  return check_shape(path + ".scales", *found.scales, shape);
}

Result<Quantization> WeightSource::quantization_of(
    const std::string& path) const {
  const auto quantization = quantization_.of(path);
  if (!quantization) {
    return fail(
        path + ".scales",
        "is there, but config.json says that the module is not quantised");
  }
  return *quantization;
}

Result<WeightSource::QuantizedTensors> WeightSource::find_quantized(
    const std::string& path,
    const std::function<mx::Shape(int width)>& shape_with,
    int columns,
    const Quantization& quantization) {
  const auto [group_size, bits, mode] = quantization;
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
  INGLE_RETURN_IF_ERROR(
      check_shape(path + ".weight", *weight, shape_with(columns / 32 * bits)));
  QuantizedTensors found{weight};
  INGLE_RETURN_IF_ERROR(
      find_groups(path, shape_with(columns / group_size), mode, found));
  return found;
}

Matrix WeightSource::load_dense(const TensorView& weight) const {
  if (!uses_kernels(numerics_)) {
    return {.weight = load_floats(weight)};
  }
  return {
      .packed = pack_dense(
          *arena_,
          static_cast<int>(weight.shape[0]),
          static_cast<int>(weight.shape[1]),
          to_float_type(weight.type),
          weight.bytes.data())};
}

Matrix WeightSource::load_quantized(const Parts& parts, int columns) const {
  const auto [group_size, bits, mode] = *parts.quantization;
  const bool has_biases = mode == QuantizationMode::kAffine;
  const auto rows = static_cast<int>(parts.weight.shape[0]);
  if (uses_kernels(numerics_) && can_pack(columns, bits, group_size) &&
      (!has_biases || parts.scales.type == parts.biases.type)) {
    return {
        .packed = pack_quantized(
            *arena_,
            rows,
            columns,
            bits,
            group_size,
            to_float_type(parts.scales.type),
            {parts.weight.bytes.data(),
             parts.scales.bytes.data(),
             parts.biases.bytes.data()})};
  }
  const TensorView* const codes[] = {&parts.weight};
  mx::array weight = copy_to_array(codes, to_shape(parts.weight.shape));
  mx::array scales = load_floats(parts.scales);
  std::optional<mx::array> biases;
  if (has_biases) {
    biases = load_floats(parts.biases);
  }
  if (numerics_ == Numerics::kNative) {
    return {
        .weight = std::move(weight),
        .scales = std::move(scales),
        .biases = std::move(biases),
        .quantization = *parts.quantization};
  }
  mx::array values = mx::dequantize(
      weight,
      scales,
      biases,
      group_size,
      bits,
      to_mlx(mode),
      std::nullopt,
      mx::float32);
  mx::eval(values);
  if (!uses_kernels(numerics_)) {
    return {.weight = std::move(values)};
  }
  return {
      .packed = pack_dense(
          *arena_,
          rows,
          columns,
          FloatType::kF32,
          reinterpret_cast<const std::byte*>(values.data<float>()))};
}

Result<Matrix> WeightSource::load_matrix(const Parts& parts, int columns)
    const {
  if (only_checks_) {
    return Matrix();
  }
  return run_mlx("load", [&] {
    return parts.quantization ? load_quantized(parts, columns)
                              : load_dense(parts.weight);
  });
}

void WeightSource::release(const Parts& parts) const {
  for (const auto* part : {&parts.weight, &parts.scales, &parts.biases}) {
    if (!part->bytes.empty()) {
      folder_.release(*part);
    }
  }
}

Result<Matrix>
WeightSource::take_matrix(const std::string& path, int rows, int columns) {
  INGLE_ASSIGN_OR_RETURN(const Parts parts, find_matrix(path, rows, columns));
  INGLE_ASSIGN_OR_RETURN(Matrix matrix, load_matrix(parts, columns));
  release(parts);
  return matrix;
}

Result<Linear> WeightSource::take_linear(
    const std::string& path,
    int in,
    int out,
    bool with_bias) {
  INGLE_ASSIGN_OR_RETURN(
      auto linears, take_linears(path, in, {&out, 1}, with_bias));
  return std::move(linears.front());
}

Result<std::vector<Linear>> WeightSource::take_linears(
    const std::string& path,
    int in,
    std::span<const int> outs,
    bool with_bias) {
  std::vector<std::vector<RowRange>> ranges;
  int rows = 0;
  for (const int out : outs) {
    ranges.push_back({{rows, out}});
    rows += out;
  }
  return take_linears(path, in, rows, ranges, with_bias);
}

Result<std::vector<Linear>> WeightSource::take_linears(
    const std::string& path,
    int in,
    int rows,
    std::span<const std::vector<RowRange>> outs,
    bool with_bias) {
  INGLE_ASSIGN_OR_RETURN(const Parts all, find_matrix(path, rows, in));
  std::optional<TensorView> biases;
  if (with_bias) {
    INGLE_ASSIGN_OR_RETURN(
        const TensorView* found, find_floats(path + ".bias", {rows}));
    biases = *found;
  }
  const size_t first = linears_.size();
  for (const std::vector<RowRange>& out : outs) {
    linears_.push_back({path, in, rows, out});
  }
  if (only_checks_) {
    return std::vector<Linear>(outs.size());
  }
  std::vector<Linear> linears;
  for (const std::vector<RowRange>& out : outs) {
    std::vector<std::byte> copies[3];
    const auto part = [&](const TensorView& tensor, size_t i) {
      return rows_of(tensor, out, copies[i]);
    };
    const auto part_of_any = [&](const TensorView& tensor, size_t i) {
      return tensor.bytes.empty() ? TensorView{} : part(tensor, i);
    };
    const Parts own{
        part(all.weight, 0),
        part_of_any(all.scales, 1),
        part_of_any(all.biases, 2),
        all.quantization};
    INGLE_ASSIGN_OR_RETURN(Matrix matrix, load_matrix(own, in));
    linears.push_back(
        {std::move(matrix), std::nullopt, first + linears.size()});
    if (biases) {
      INGLE_ASSIGN_OR_RETURN(linears.back().bias, run_mlx("load", [&] {
                               return load_floats(part(*biases, 0));
                             }));
    }
  }
  release(all);
  return linears;
}

void WeightSource::drop(const std::string& name) {
  if (has(name) && used_.insert(name).second) {
    dropped_.insert(name);
    if (!only_checks_) {
      log_info(origin_ + ": tensor " + quote_name(name) + " is not needed");
    }
  }
}

void WeightSource::drop_all(const std::string& prefix) {
  size_t count = 0;
  for (const auto& [name, tensor] : folder_.tensors()) {
    if (name.starts_with(prefix) && used_.insert(name).second) {
      dropped_.insert(name);
      ++count;
    }
  }
  if (count > 0 && !only_checks_) {
    log_info(
        origin_ + ": " + std::to_string(count) + " tensors below " +
        quote_name(prefix) + " are not needed");
  }
}

AdapterLayout WeightSource::layout() const {
  AdapterLayout layout{linears_, {}};
  for (const std::string& name : used_) {
    if (dropped_.count(name) == 0) {
      layout.modules.insert(name.substr(0, name.rfind('.')));
    }
  }
  return layout;
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
