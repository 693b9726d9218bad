// What the plans of all families have in common: sizes out of keys, tensors by
// name and shape, the fields of config.json that all have.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "import/gguf_reader.h"
#include "import/model_plan.h"

namespace ingle {

struct TransformerSizes {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t mlp = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0; // even
  int64_t context = 0;
  int64_t vocabulary = 0;
};

// Outermost first.
enum class TensorShape {
  kHidden, // [hidden]: a norm
  kHead, // [head_dim]: a norm of heads
  kQuery, // [heads * head_dim, hidden]
  kKey, // [kv_heads * head_dim, hidden]; values, too
  kOutput, // [hidden, heads * head_dim]
  kUp, // [mlp, hidden]
  kDown, // [hidden, mlp]
};

// A tensor that every layer has.
struct LayerTensor {
  const char* gguf_name; // after "blk.N."
  const char* module; // after "model.layers.N."
  TensorShape shape;
  bool is_interleaved = false; // see TensorPlan::interleaved_heads
};

// A family calls these in the order in which they stand here, then sets what
// config() lacks.
//
// Units:   keys are named without the architecture: "block_count" is
//          "llama.block_count".
// Owns:    nothing of the file, which must outlive the plan.
// Threads: one.
// Errors:  kCorruption, kUnsupported; the message names file and key or tensor.
class PlanBuilder {
 public:
  PlanBuilder(const GgufFile& file, std::string_view architecture);

  // Refuses mixtures of experts and sizes that differ from layer to layer.
  Status read_sizes();
  // Embedding, layers, last norm, and the head where it is there.
  // `norms_are_one_plus`: see TensorPlan::is_one_plus.
  Status add_tensors(
      std::span<const LayerTensor> layer,
      bool norms_are_one_plus);
  // Sizes, norm epsilon and rope; `usual_theta` where the file has no base.
  Status write_config(const char* model_type, float usual_theta);
  // Refuses tensors that nothing has taken.
  Result<ModelPlan> finish();

  const GgufFile& file() const {
    return file_;
  }
  const TransformerSizes& sizes() const {
    return sizes_;
  }
  nlohmann::ordered_json& config() {
    return plan_.config;
  }
  float theta() const {
    return theta_;
  }
  // Takes a tensor that config.json says in other words.
  void replace(const GgufTensor& tensor, std::string replaced_by);

  std::string key(std::string_view name) const;
  // Nothing where the file has none.
  Result<std::optional<int64_t>> find_size(std::string_view name) const;
  // The file has to have it.
  Status read_size(std::string_view name, int64_t& size) const;
  Status corruption(const std::string& problem) const;
  Status unsupported(const std::string& problem) const;

 private:
  Status refuse_experts() const;
  Status refuse_sizes_by_layer() const;
  Status read_head_dim();
  Status add(
      const std::string& gguf_name,
      const std::string& module,
      const std::vector<int64_t>& shape,
      bool norm_is_one_plus,
      int64_t interleaved_heads);
  Status write_rope_scaling();

  const GgufFile& file_;
  std::string architecture_;
  TransformerSizes sizes_;
  float theta_ = 0;
  bool is_tied_ = false;
  std::set<std::string> used_; // names of tensors in the plan
  ModelPlan plan_;
};

} // namespace ingle
