// The part of WeightSource that takes the matrices of experts.
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "model/run_mlx.h"
#include "model/tensor_arrays.h"
#include "model/weight_source.h"

namespace ingle {
namespace {

// What one of so many experts has: one tensor of all of them, or one of each.
const std::byte* part_of(
    const std::vector<const TensorView*>& tensors,
    int expert,
    int experts) {
  const auto i = static_cast<size_t>(expert);
  return tensors.size() > 1 ? tensors[i]->bytes.data()
                            : tensors[0]->bytes.data() +
          tensors[0]->bytes.size() / static_cast<size_t>(experts) * i;
}

mx::array to_f32(const mx::array& x) {
  mx::array floats = mx::astype(x, mx::float32);
  mx::eval(floats);
  return floats;
}

} // namespace

// One of all experts, or one of each.
Result<WeightSource::ExpertTensors> WeightSource::find_experts(
    const std::vector<std::string>& modules,
    std::optional<int> experts,
    int rows,
    int columns) {
  const auto shape_with = [&](int width) {
    return experts ? mx::Shape{*experts, rows, width} : mx::Shape{rows, width};
  };
  ExpertTensors found;
  for (const std::string& path : modules) {
    if (!has(path + ".scales")) {
      INGLE_ASSIGN_OR_RETURN(
          found.weights.emplace_back(),
          find_floats(path + ".weight", shape_with(columns)));
    } else {
      INGLE_RETURN_IF_ERROR(
          find_quantized_expert(path, shape_with, columns, found));
    }
    const size_t n = found.weights.size();
    const bool is_alike =
        found.weights.back()->type == found.weights.front()->type &&
        found.scales.size() == (found.quantization ? n : 0) &&
        (!found.quantization ||
         found.scales.back()->type == found.scales.front()->type);
    if (!is_alike) {
      return fail(path + ".weight", "is not of the type of expert 0's");
    }
  }
  return found;
}

Status WeightSource::find_quantized_expert(
    const std::string& path,
    const std::function<mx::Shape(int width)>& shape_with,
    int columns,
    ExpertTensors& found) {
  INGLE_ASSIGN_OR_RETURN(
      const Quantization quantization, quantization_of(path));
  if (found.quantization && *found.quantization != quantization) {
    return fail(path + ".weight", "is not quantised as expert 0's is");
  }
  found.quantization = quantization;
  INGLE_ASSIGN_OR_RETURN(
      const QuantizedTensors own,
      find_quantized(path, shape_with, columns, quantization));
  found.weights.push_back(own.weight);
  found.scales.push_back(own.scales);
  if (own.biases != nullptr) {
    if (own.scales->type != own.biases->type) {
      return fail(path + ".biases", "has to be of the type of the scales");
    }
    found.biases.push_back(own.biases);
  }
  return Status::ok();
}

Result<WeightSource::ExpertTensors> WeightSource::find_fused_experts(
    const std::string& module,
    const std::string& name,
    int experts,
    int rows,
    int columns) {
  ExpertTensors found;
  if (name == "down_proj") {
    INGLE_ASSIGN_OR_RETURN(
        found.weights.emplace_back(),
        find_floats(module + "." + name, {experts, rows, columns}));
    return found;
  }
  INGLE_ASSIGN_OR_RETURN(
      const TensorView* both,
      find_floats(module + ".gate_up_proj", {experts, 2 * rows, columns}));
  const size_t half = both->bytes.size() / static_cast<size_t>(experts) / 2;
  size_t begin = name == "gate_proj" ? 0 : half;
  for (int expert = 0; expert < experts; ++expert) {
    TensorView part = *both;
    part.shape = {rows, columns};
    part.bytes = both->bytes.subspan(begin, half);
    found.parts.push_back(std::move(part));
    begin += 2 * half;
  }
  for (const TensorView& part : found.parts) {
    found.weights.push_back(&part);
  }
  return found;
}

Result<mx::array> WeightSource::take_expert_biases(
    const std::vector<std::string>& modules,
    std::optional<int> experts,
    int rows) {
  std::vector<mx::array> biases;
  for (const std::string& path : modules) {
    INGLE_ASSIGN_OR_RETURN(
        auto bias,
        take(
            path + ".bias",
            experts ? mx::Shape{*experts, rows} : mx::Shape{1, rows}));
    biases.push_back(std::move(bias));
  }
  if (only_checks_) {
    return biases.front();
  }
  return run_mlx("load", [&] {
    mx::array all = mx::concatenate(std::move(biases), 0);
    mx::eval(all);
    return all;
  });
}

Result<ExpertMatrices> WeightSource::take_experts(
    const ExpertModules& of,
    const std::string& name,
    int rows,
    int columns) {
  const int experts = of.count;
  const std::string fused = of.layer + ".experts";
  if (has(fused + ".gate_up_proj")) {
    if (of.have_biases) { // rows and columns are the other way round there
      return fail(
          fused + ".gate_up_proj",
          "is of experts with biases that were published unquantised, which "
          "can't be read; take the model in MXFP4, or as MLX's converters "
          "leave it");
    }
    INGLE_ASSIGN_OR_RETURN(
        const ExpertTensors found,
        find_fused_experts(fused, name, experts, rows, columns));
    return load_experts(found, experts, rows, columns);
  }
  std::vector<std::string> modules;
  for (int expert = 0; expert < experts; ++expert) {
    modules.push_back(
        of.layer + ".experts." + std::to_string(expert) + "." + name);
  }
  std::optional<int> stacked;
  if (!has(modules.front() + ".weight")) {
    modules = {of.layer + "." + of.stacked + "." + name};
    stacked = experts;
  }
  std::optional<mx::array> bias;
  if (of.have_biases) {
    INGLE_ASSIGN_OR_RETURN(bias, take_expert_biases(modules, stacked, rows));
  }
  INGLE_ASSIGN_OR_RETURN(
      const ExpertTensors found, find_experts(modules, stacked, rows, columns));
  INGLE_ASSIGN_OR_RETURN(
      ExpertMatrices matrices, load_experts(found, experts, rows, columns));
  matrices.bias = std::move(bias);
  return matrices;
}

Result<ExpertMatrices> WeightSource::load_experts(
    const ExpertTensors& found,
    int experts,
    int rows,
    int columns) {
  if (only_checks_) {
    return ExpertMatrices();
  }
  return run_mlx("load", [&] {
    ExpertMatrices matrices = uses_kernels(numerics_)
        ? pack_experts(found, experts, rows, columns)
        : copy_experts(found, experts, rows, columns);
    for (const auto* parts : {&found.weights, &found.scales, &found.biases}) {
      for (const TensorView* part : *parts) {
        folder_.release(*part);
      }
    }
    return matrices;
  });
}

ExpertMatrices WeightSource::pack_experts(
    const ExpertTensors& found,
    int experts,
    int rows,
    int columns) const {
  ExpertMatrices matrices;
  for (int expert = 0; expert < experts; ++expert) {
    const std::byte* weight = part_of(found.weights, expert, experts);
    if (!found.quantization) {
      matrices.packed.push_back(pack_dense(
          *arena_,
          rows,
          columns,
          to_float_type(found.weights.front()->type),
          weight));
      continue;
    }
    matrices.packed.push_back(pack_quantized(
        *arena_,
        rows,
        columns,
        found.quantization->bits,
        found.quantization->group_size,
        to_float_type(found.scales.front()->type),
        {weight,
         part_of(found.scales, expert, experts),
         found.biases.empty() ? nullptr
                              : part_of(found.biases, expert, experts)}));
  }
  return matrices;
}

ExpertMatrices WeightSource::copy_experts(
    const ExpertTensors& found,
    int experts,
    int rows,
    int columns) const {
  const bool is_native = numerics_ == Numerics::kNative;
  const auto floats = [&](const auto& tensors, int width) {
    const mx::array all = copy_to_array(tensors, {experts, rows, width});
    return is_native || all.dtype() == mx::uint8 ? all : to_f32(all);
  };
  if (!found.quantization) {
    return {.weight = floats(found.weights, columns)};
  }
  const auto [group_size, bits, mode] = *found.quantization;
  mx::array weight =
      copy_to_array(found.weights, {experts, rows, columns / 32 * bits});
  mx::array scales = floats(found.scales, columns / group_size);
  std::optional<mx::array> biases;
  if (!found.biases.empty()) {
    biases = floats(found.biases, columns / group_size);
  }
  if (!is_native) {
    return {
        .weight = to_f32(mx::dequantize(
            weight,
            scales,
            biases,
            group_size,
            bits,
            to_mlx(mode),
            std::nullopt,
            mx::float32))};
  }
  return {
      .weight = std::move(weight),
      .scales = std::move(scales),
      .biases = std::move(biases),
      .quantization = *found.quantization};
}

} // namespace ingle
