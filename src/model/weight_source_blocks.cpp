// The part of WeightSource that takes experts in MXFP4 as they are published.
#include <cstring>

#include <mlx/allocator.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "model/run_mlx.h"
#include "model/weight_source.h"

namespace ingle {
namespace {

constexpr int kGroup = kMxfp4.group_size; // values of a block
constexpr int kBlockBytes = kGroup / 2;

// `bytes` each of the rows of one of so many experts, to where they stand
// together.
void copy_rows(
    const TensorView& tensor,
    const RowPart& part,
    int expert,
    int rows,
    size_t bytes,
    std::byte* to) {
  const auto stride = bytes * static_cast<size_t>(part.of);
  const std::byte* from = tensor.bytes.data() +
      static_cast<size_t>(expert) * static_cast<size_t>(rows) * stride +
      static_cast<size_t>(part.part) * bytes;
  for (int row = 0; row < rows; ++row, from += stride, to += bytes) {
    std::memcpy(to, from, bytes);
  }
}

struct Blocks {
  const TensorView& weight;
  const TensorView& scales;
  RowPart part;
  int experts = 0;
  int rows = 0;
  int columns = 0;

  size_t weight_bytes() const { // of a row
    return static_cast<size_t>(columns) / kGroup * kBlockBytes;
  }
  size_t scales_bytes() const {
    return static_cast<size_t>(columns) / kGroup;
  }
};

ExpertMatrices pack_blocks(Arena& arena, const Blocks& blocks) {
  const auto rows = static_cast<size_t>(blocks.rows);
  std::vector<std::byte> weight(rows * blocks.weight_bytes());
  std::vector<std::byte> scales(rows * blocks.scales_bytes());
  ExpertMatrices matrices;
  for (int expert = 0; expert < blocks.experts; ++expert) {
    copy_rows(
        blocks.weight,
        blocks.part,
        expert,
        blocks.rows,
        blocks.weight_bytes(),
        weight.data());
    copy_rows(
        blocks.scales,
        blocks.part,
        expert,
        blocks.rows,
        blocks.scales_bytes(),
        scales.data());
    matrices.packed.push_back(pack_quantized(
        arena,
        blocks.rows,
        blocks.columns,
        4,
        kGroup,
        FloatType::kE8M0,
        {weight.data(), scales.data()}));
  }
  return matrices;
}

// [experts, rows, as many elements as a row has].
mx::array copy_all(
    const Blocks& blocks,
    const TensorView& tensor,
    size_t row_bytes,
    mx::Dtype type) {
  const size_t expert_bytes = static_cast<size_t>(blocks.rows) * row_bytes;
  mx::allocator::Data data =
      mx::allocator::malloc(static_cast<size_t>(blocks.experts) * expert_bytes);
  auto* to = static_cast<std::byte*>(data.buffer().raw_ptr());
  for (int expert = 0; expert < blocks.experts; ++expert) {
    copy_rows(tensor, blocks.part, expert, blocks.rows, row_bytes, to);
    to += expert_bytes;
  }
  const auto width = static_cast<int>(row_bytes / mx::size_of(type));
  return mx::array(std::move(data), {blocks.experts, blocks.rows, width}, type);
}

ExpertMatrices copy_blocks(const Blocks& blocks, bool is_native) {
  mx::array weight =
      copy_all(blocks, blocks.weight, blocks.weight_bytes(), mx::uint32);
  mx::array scales =
      copy_all(blocks, blocks.scales, blocks.scales_bytes(), mx::uint8);
  if (is_native) {
    return {
        .weight = std::move(weight),
        .scales = std::move(scales),
        .quantization = kMxfp4};
  }
  mx::array values = mx::dequantize(
      weight,
      scales,
      std::nullopt,
      kMxfp4.group_size,
      kMxfp4.bits,
      to_mlx(kMxfp4.mode),
      std::nullopt,
      mx::float32);
  mx::eval(values);
  return {.weight = std::move(values)};
}

} // namespace

Result<const TensorView*> WeightSource::find_bytes(
    const std::string& name,
    const mx::Shape& shape) {
  INGLE_ASSIGN_OR_RETURN(const TensorView* tensor, find(name));
  if (tensor->type != TensorType::kU8) {
    return fail(
        name,
        "has the type " + std::string(to_string(tensor->type)) +
            " where U8 is expected, as it is of MXFP4");
  }
  INGLE_RETURN_IF_ERROR(check_shape(name, *tensor, shape));
  return tensor;
}

Result<mx::array> WeightSource::take_block_biases(
    const std::string& name,
    const RowPart& part,
    int experts,
    int rows) {
  INGLE_ASSIGN_OR_RETURN(auto all, take(name, {experts, rows * part.of}));
  if (only_checks_) {
    return all;
  }
  return run_mlx("load", [&] {
    mx::array own = mx::contiguous(
        mx::take(mx::reshape(all, {experts, rows, part.of}), part.part, 2));
    mx::eval(own);
    return own;
  });
}

Result<ExpertMatrices> WeightSource::take_expert_blocks(
    const std::string& path,
    const RowPart& part,
    int experts,
    int rows,
    int columns) {
  if (columns % kGroup != 0) {
    return fail(
        path + "_blocks",
        "is of " + std::to_string(columns) +
            " columns, which is not a multiple of " + std::to_string(kGroup));
  }
  const int all_rows = rows * part.of;
  const int groups = columns / kGroup;
  INGLE_ASSIGN_OR_RETURN(
      const TensorView* weight,
      find_bytes(path + "_blocks", {experts, all_rows, groups, kBlockBytes}));
  INGLE_ASSIGN_OR_RETURN(
      const TensorView* scales,
      find_bytes(path + "_scales", {experts, all_rows, groups}));
  INGLE_ASSIGN_OR_RETURN(
      auto bias, take_block_biases(path + "_bias", part, experts, rows));
  if (only_checks_) {
    return ExpertMatrices();
  }
  return run_mlx("load", [&] {
    const Blocks blocks{*weight, *scales, part, experts, rows, columns};
    ExpertMatrices matrices = uses_kernels(numerics_)
        ? pack_blocks(*arena_, blocks)
        : copy_blocks(blocks, numerics_ == Numerics::kNative);
    matrices.bias = std::move(bias);
    if (part.part + 1 == part.of) { // the last that looks at them
      folder_.release(*weight);
      folder_.release(*scales);
    }
    return matrices;
  });
}

} // namespace ingle
