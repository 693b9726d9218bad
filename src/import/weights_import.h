// Writes the tensors of a plan as one safetensors file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/file_system.h"
#include "base/status.h"
#include "import/affine.h"
#include "import/import_model.h"
#include "import/model_plan.h"

namespace ingle {

class WeightsImport {
 public:
  // `plan` and the bytes that it points to must outlive this object.
  explicit WeightsImport(const ModelPlan& plan);

  // Bytes of all tensors as they will be stored.
  uint64_t total_bytes() const;
  // The "quantization" entry of config.json: the commonest width, and every
  // module that differs from it (false: plain). Null where nothing is
  // quantised.
  nlohmann::ordered_json quantization() const;
  std::vector<ImportedTensor> report() const;

  // `origin` names the GGUF file. Errors: kCorruption (a scale that is not
  // finite), kNoSpace, kIo.
  Status write(
      FileSystem& fs,
      const std::string& path,
      const std::string& origin,
      const ImportProgress& progress) const;

 private:
  enum class Part { kPlain, kCodes, kScales, kBiases };

  // One tensor of the safetensors file.
  struct Output {
    const TensorPlan* plan;
    Part part;
    std::string name;
    TensorType type;
    std::vector<int64_t> shape;
    uint64_t bytes;
  };

  static std::optional<AffineForm> form_of(const TensorPlan& plan);
  static TensorType plain_type(const TensorPlan& plan);
  void add_output(
      const TensorPlan& plan,
      Part part,
      TensorType type,
      int64_t columns);

  // The buffers of a conversion, reused from chunk to chunk.
  struct Buffers {
    std::vector<std::byte> rows;
    std::vector<float> plain;
    AffineBytes affine;
  };
  // Rows [first, first + count) as they are stored. Nothing where a scale is
  // not finite.
  static std::optional<ByteView>
  convert(const Output& output, int64_t first, int64_t count, Buffers& buffers);

  const ModelPlan& plan_;
  std::vector<Output> outputs_; // in the order of the file
};

} // namespace ingle
