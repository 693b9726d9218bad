#include "import/weights_import.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "import/dequantize.h"
#include "weights/safetensors_writer.h"

namespace ingle {
namespace {

// What is converted at a time: large enough for the disk, small for memory.
constexpr int64_t kChunkBytes = 1 << 20;

// Rows [first, first + count) as they are in the imported form.
ByteView take_rows(
    const TensorPlan& plan,
    int64_t first,
    int64_t count,
    std::vector<std::byte>& buffer) {
  const ByteView bytes = plan.source->bytes;
  const size_t row_bytes =
      bytes.size() / static_cast<size_t>(plan.source->rows());
  if (plan.interleaved_heads == 0) {
    return bytes.subspan(
        static_cast<size_t>(first) * row_bytes,
        static_cast<size_t>(count) * row_bytes);
  }
  buffer.clear();
  for (int64_t row = first; row < first + count; ++row) {
    const ByteView source = bytes.subspan(
        static_cast<size_t>(source_row(plan, row)) * row_bytes, row_bytes);
    buffer.insert(buffer.end(), source.begin(), source.end());
  }
  return buffer;
}

} // namespace

WeightsImport::WeightsImport(const ModelPlan& plan) : plan_(plan) {
  for (const TensorPlan& tensor : plan.tensors) {
    const int64_t columns = tensor.source->columns();
    if (const auto form = form_of(tensor)) {
      const int64_t groups = columns / kAffineGroup;
      add_output(tensor, Part::kCodes, TensorType::kU32, groups * form->bits);
      add_output(tensor, Part::kScales, form->scale_type, groups);
      add_output(tensor, Part::kBiases, form->scale_type, groups);
    } else {
      add_output(tensor, Part::kPlain, plain_type(tensor), columns);
    }
  }
  // Wide elements first, so that every tensor is aligned.
  std::stable_sort(
      outputs_.begin(), outputs_.end(), [](const auto& a, const auto& b) {
        return element_size(a.type) > element_size(b.type);
      });
}

std::optional<AffineForm> WeightsImport::form_of(const TensorPlan& plan) {
  return plan.is_matrix ? affine_form(plan.source->type) : std::nullopt;
}

// Norms that are quantised in the file become f32.
TensorType WeightsImport::plain_type(const TensorPlan& plan) {
  if (plan.is_one_plus) {
    return TensorType::kF32;
  }
  switch (plan.source->type) {
    case GgmlType::kF16:
      return TensorType::kF16;
    case GgmlType::kBF16:
      return TensorType::kBF16;
    default:
      return TensorType::kF32;
  }
}

void WeightsImport::add_output(
    const TensorPlan& plan,
    Part part,
    TensorType type,
    int64_t columns) {
  Output output{&plan, part, plan.module, type, plan.source->shape, 0};
  output.name += part == Part::kScales ? ".scales"
      : part == Part::kBiases          ? ".biases"
                                       : ".weight";
  output.shape.back() = columns;
  // No product overflows: the reader found bytes for every element, and no
  // form is more than twenty times as large.
  output.bytes =
      static_cast<uint64_t>(plan.source->rows() * columns) * element_size(type);
  outputs_.push_back(std::move(output));
}

uint64_t WeightsImport::total_bytes() const {
  uint64_t total = 0;
  for (const Output& output : outputs_) {
    total += output.bytes;
  }
  return total;
}

nlohmann::ordered_json WeightsImport::quantization() const {
  std::map<int, int> uses; // of each width
  for (const TensorPlan& tensor : plan_.tensors) {
    if (const auto form = form_of(tensor)) {
      ++uses[form->bits];
    }
  }
  if (uses.empty()) {
    return nullptr;
  }
  const int commonest =
      std::max_element(uses.begin(), uses.end(), [](auto& a, auto& b) {
        return a.second < b.second;
      })->first;
  nlohmann::ordered_json entry = {
      {"group_size", kAffineGroup}, {"bits", commonest}, {"mode", "affine"}};
  // Modules are unique; the object's own insertion would look through all.
  auto& fields = entry.get_ref<nlohmann::ordered_json::object_t&>();
  for (const TensorPlan& tensor : plan_.tensors) {
    const auto form = form_of(tensor);
    if (form && form->bits != commonest) {
      fields.Container::emplace_back(
          tensor.module,
          nlohmann::ordered_json{
              {"group_size", kAffineGroup}, {"bits", form->bits}});
    } else if (!form && tensor.is_matrix) {
      fields.Container::emplace_back(tensor.module, false);
    }
  }
  return entry;
}

std::vector<ImportedTensor> WeightsImport::report() const {
  std::unordered_map<const TensorPlan*, uint64_t> stored_bytes;
  for (const Output& output : outputs_) {
    stored_bytes[output.plan] += output.bytes;
  }
  std::vector<ImportedTensor> tensors;
  for (const TensorPlan& plan : plan_.tensors) {
    ImportedTensor tensor;
    tensor.gguf_name = plan.source->name;
    tensor.name = plan.module;
    tensor.shape = plan.source->shape;
    tensor.gguf_type = ggml_type_info(plan.source->type).name;
    tensor.gguf_bytes = plan.source->bytes.size();
    tensor.stored_bytes = stored_bytes[&plan];
    if (const auto form = form_of(plan)) {
      tensor.stored_as = std::to_string(form->bits) + " bits, groups of " +
          std::to_string(kAffineGroup) + ", " +
          std::string(to_string(form->scale_type)) + " scales";
      tensor.is_exact = form->exact;
    } else {
      tensor.stored_as = to_string(plain_type(plan));
    }
    tensors.push_back(std::move(tensor));
  }
  for (const ReplacedTensor& replaced : plan_.replaced) {
    ImportedTensor tensor;
    tensor.gguf_name = replaced.source->name;
    tensor.shape = replaced.source->shape;
    tensor.gguf_type = ggml_type_info(replaced.source->type).name;
    tensor.gguf_bytes = replaced.source->bytes.size();
    tensor.stored_as = replaced.replaced_by;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::optional<ByteView> WeightsImport::convert(
    const Output& output,
    int64_t first,
    int64_t count,
    Buffers& buffers) {
  const GgmlTypeInfo& info = ggml_type_info(output.plan->source->type);
  const ByteView blocks = take_rows(*output.plan, first, count, buffers.rows);
  if (output.part == Part::kPlain) {
    const bool is_one_plus = output.plan->is_one_plus;
    if (info.block_elements == 1 && !is_one_plus) {
      return blocks;
    }
    buffers.plain.resize(
        blocks.size() / info.block_bytes * info.block_elements);
    dequantize(info.type, blocks, buffers.plain);
    if (is_one_plus) {
      for (float& value : buffers.plain) {
        value -= 1;
      }
    }
    return std::as_bytes(std::span(buffers.plain));
  }
  if (!to_affine(info.type, blocks, buffers.affine)) {
    return std::nullopt;
  }
  switch (output.part) {
    case Part::kScales:
      return buffers.affine.scales;
    case Part::kBiases:
      return buffers.affine.biases;
    default:
      return buffers.affine.codes;
  }
}

Status WeightsImport::write(
    FileSystem& fs,
    const std::string& path,
    const std::string& origin,
    const ImportProgress& progress) const {
  std::vector<TensorSpec> specs;
  for (const Output& output : outputs_) {
    specs.push_back({output.name, output.type, output.shape});
  }
  INGLE_ASSIGN_OR_RETURN(
      auto writer, SafetensorsWriter::create(fs, path, std::move(specs)));
  const uint64_t total = total_bytes();
  uint64_t done = 0;
  Buffers buffers;
  for (const Output& output : outputs_) {
    const GgufTensor& source = *output.plan->source;
    const int64_t rows = source.rows();
    const auto row_bytes = static_cast<int64_t>(source.bytes.size()) / rows;
    const int64_t step = std::max<int64_t>(1, kChunkBytes / row_bytes);
    for (int64_t row = 0; row < rows; row += step) {
      const auto bytes =
          convert(output, row, std::min(step, rows - row), buffers);
      if (!bytes) {
        return Status::corruption(
            origin + ": tensor " + quote_name(source.name) +
            " has a scale that is not finite");
      }
      INGLE_RETURN_IF_ERROR(writer->append(output.name, *bytes));
      done += bytes->size();
      if (progress) {
        progress(done, total);
      }
    }
  }
  return writer->finish();
}

} // namespace ingle
