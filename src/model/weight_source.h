// Tensors of a model folder on their way into a model, each accounted for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <mlx/array.h>

#include "base/status.h"
#include "kernels/arena.h"
#include "model/adapter_layout.h"
#include "model/config.h"
#include "model/linear.h"
#include "model/numerics.h"
#include "weights/safetensors_reader.h"

namespace ingle {

// The matrices of as many experts: each in `layer`.experts.N.NAME, or all of
// them in `layer`.`stacked`.NAME.
struct ExpertModules {
  std::string layer;
  std::string stacked;
  int count = 0;
  bool have_biases = false;
};

// Rows `part`, `part` + `of`, `part` + 2 * `of` ... of what stands together.
struct RowPart {
  int part = 0;
  int of = 1;
};

// A family takes every tensor that it uses and names those that it drops; what
// is left over at the end is an error, because it means that the family does
// not compute what the file's author did.
//
// Owns:    nothing of the folder: arrays are copies, so that the files can be
//          unmapped after loading.
// Threads: the engine thread: arrays are made and evaluated here.
// Errors:  kCorruption with one line that names file, tensor and cause;
//          kCancelled once `stop` is requested.
class WeightSource {
 public:
  // `arena` outlives what is taken: for uses_kernels(numerics), which packs
  // matrices into it.
  WeightSource(
      const WeightFolder& folder,
      std::string origin,
      const QuantizationConfig& quantization,
      Numerics numerics,
      std::stop_token stop = {},
      std::function<void(uint64_t done, uint64_t total)> on_progress = {},
      Arena* arena = nullptr)
      : folder_(folder),
        origin_(std::move(origin)),
        quantization_(quantization),
        numerics_(numerics),
        stop_(std::move(stop)),
        on_progress_(std::move(on_progress)),
        arena_(arena),
        total_bytes_(folder.total_bytes()) {}

  // From now on nothing is read: what is taken has the shape that was asked
  // for, and no values. What is wrong with names, types and shapes is said all
  // the same. For kExact.
  void only_check() {
    only_checks_ = true;
  }

  bool has(const std::string& name) const {
    return folder_.tensors().count(name) != 0;
  }

  // Its shape; nothing where it is not there.
  std::optional<std::vector<int64_t>> shape_of(const std::string& name) const;

  // A dense floating-point tensor of exactly this shape; f32 but in kNative.
  Result<mx::array> take(const std::string& name, const mx::Shape& shape);

  // `path`.weight as a [rows, columns] matrix, quantised iff `path`.scales is
  // there (in kExact its values are dense).
  Result<Matrix> take_matrix(const std::string& path, int rows, int columns);

  // A matrix [out, in], and `path`.bias iff `with_bias`.
  Result<Linear>
  take_linear(const std::string& path, int in, int out, bool with_bias);

  // Those whose rows `path` has one after the other, outs[i] of each.
  Result<std::vector<Linear>> take_linears(
      const std::string& path,
      int in,
      std::span<const int> outs,
      bool with_bias);

  // Those whose rows `path`, which has `rows`, has in pieces: outs[i] are those
  // of each, in their order.
  Result<std::vector<Linear>> take_linears(
      const std::string& path,
      int in,
      int rows,
      std::span<const std::vector<RowRange>> outs,
      bool with_bias);

  // The matrices [rows, columns] of that name; quantised iff they have scales,
  // all alike. Or all, dense and without biases, in `layer`.experts.`name`,
  // where gate_proj and up_proj are the two halves of each gate_up_proj.
  Result<ExpertMatrices> take_experts(
      const ExpertModules& experts,
      const std::string& name,
      int rows,
      int columns);

  // The same, all of one tensor that may have the rows of others in between: in
  // MXFP4 as models are published in it, `path`_blocks and `path`_scales, with
  // biases in `path`_bias.
  Result<ExpertMatrices> take_expert_blocks(
      const std::string& path,
      const RowPart& part,
      int experts,
      int rows,
      int columns);

  // Declares that a tensor is of no use, if it is there; logged by name.
  void drop(const std::string& name);
  // The same of all whose names begin so; logged once.
  void drop_all(const std::string& prefix);
  const std::set<std::string>& dropped() const {
    return dropped_;
  }

  // The linears that were taken, by number, none of which takes adapters yet;
  // and the modules that tensors were taken of.
  AdapterLayout layout() const;

  // Errors: kCorruption, naming the tensors that were neither taken nor
  // dropped.
  Status check_all_used() const;

 private:
  Status fail(const std::string& name, const std::string& what) const;
  Result<const TensorView*> find(const std::string& name);
  Result<const TensorView*> find_floats(
      const std::string& name,
      const mx::Shape& shape);
  Status check_shape(
      const std::string& name,
      const TensorView& tensor,
      const mx::Shape& shape);
  // The tensors of a matrix, of types and shapes that fit together; of a dense
  // one only the first. Or some of their rows.
  struct Parts {
    TensorView weight;
    TensorView scales{};
    TensorView biases{};
    std::optional<Quantization> quantization{}; // none: dense
  };
  Result<Parts> find_matrix(const std::string& path, int rows, int columns);
  // As config.json says of a module that has scales.
  Result<Quantization> quantization_of(const std::string& path) const;
  // Of a matrix, or of many in one tensor. Biases null: the mode has none.
  struct QuantizedTensors {
    const TensorView* weight = nullptr;
    const TensorView* scales = nullptr;
    const TensorView* biases = nullptr;
  };
  // `shape_with`: of each, whose rows are of so many elements. `columns`: of
  // the values.
  Result<QuantizedTensors> find_quantized(
      const std::string& path,
      const std::function<mx::Shape(int width)>& shape_with,
      int columns,
      const Quantization& quantization);
  // Scales, and biases where the mode has any, of this shape.
  Status find_groups(
      const std::string& path,
      const mx::Shape& shape,
      QuantizationMode mode,
      QuantizedTensors& found);
  // Their values as a matrix. `columns`: of the values.
  Result<Matrix> load_matrix(const Parts& parts, int columns) const;
  // What was loaded is not read again.
  void release(const Parts& parts) const;
  Matrix load_dense(const TensorView& weight) const;
  Matrix load_quantized(const Parts& parts, int columns) const;
  mx::array load_floats(const TensorView& tensor) const;
  // In weight_source_experts.cpp, as take_experts(). One tensor of all experts
  // each, or one of each expert; all of one type.
  struct ExpertTensors {
    std::vector<const TensorView*> weights;
    std::vector<const TensorView*> scales{}; // empty: dense
    std::vector<const TensorView*> biases{}; // empty: of MXFP4, too
    std::optional<Quantization> quantization{};
    std::vector<TensorView> parts{}; // of what `weights` are, if not whole
  };
  Result<ExpertTensors> find_fused_experts(
      const std::string& module,
      const std::string& name,
      int experts,
      int rows,
      int columns);
  // `experts`: the modules have so many, one after the other; none: one each.
  Result<ExpertTensors> find_experts(
      const std::vector<std::string>& modules,
      std::optional<int> experts,
      int rows,
      int columns);
  // [experts, rows]; of modules as above.
  Result<mx::array> take_expert_biases(
      const std::vector<std::string>& modules,
      std::optional<int> experts,
      int rows);
  // In weight_source_blocks.cpp, as take_expert_blocks().
  Result<const TensorView*> find_bytes(
      const std::string& name,
      const mx::Shape& shape);
  Result<mx::array> take_block_biases(
      const std::string& name,
      const RowPart& part,
      int experts,
      int rows);
  Status find_quantized_expert(
      const std::string& path,
      const std::function<mx::Shape(int width)>& shape_with,
      int columns,
      ExpertTensors& found);
  // Lets go of their bytes.
  Result<ExpertMatrices>
  load_experts(const ExpertTensors& found, int experts, int rows, int columns);
  ExpertMatrices pack_experts(
      const ExpertTensors& found,
      int experts,
      int rows,
      int columns) const;
  ExpertMatrices copy_experts(
      const ExpertTensors& found,
      int experts,
      int rows,
      int columns) const;

  const WeightFolder& folder_;
  std::string origin_;
  const QuantizationConfig& quantization_;
  Numerics numerics_;
  std::stop_token stop_;
  std::function<void(uint64_t done, uint64_t total)> on_progress_;
  Arena* arena_;
  uint64_t total_bytes_;
  bool only_checks_ = false;
  uint64_t found_bytes_ = 0;
  std::set<std::string> used_;
  std::set<std::string> dropped_; // of those
  std::vector<LinearPlace> linears_;
};

} // namespace ingle
