#include "model/memory_plan.h"

#include <algorithm>
#include <array>

#include "model/load_model.h"
#include "model/make_kv_state.h"
#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

constexpr uint64_t kFloat = sizeof(float);

// Measured (docs/memory.md): code and libraries, and what a tokenizer takes for
// each byte of its file.
constexpr uint64_t kProgramBytes = 25'000'000;
constexpr uint64_t kTokenizerFactor = 9;

uint64_t product(int64_t a, int64_t b) {
  return static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
}

uint64_t program_bytes(FileSystem& fs, const std::string& folder) {
  const auto tokenizer = fs.stat(join_path(folder, "tokenizer.json"));
  return kProgramBytes +
      (tokenizer.is_ok() ? kTokenizerFactor * tokenizer->size : 0);
}

// Of one tensor where everything is computed exactly: unpacked to f32, scales
// and biases with their weight.
uint64_t
exact_bytes(const std::string& name, const TensorView& tensor, int bits) {
  const auto ends_so = [&](const auto& end) { return name.ends_with(end); };
  if (std::ranges::any_of(
          std::array{".scales", ".biases", "_scales"}, ends_so)) {
    return 0;
  }
  const uint64_t size = tensor.bytes.size();
  if (tensor.type == TensorType::kU8) { // blocks of MXFP4
    return 2 * size * kFloat;
  }
  return tensor.type == TensorType::kU32
      ? size * 8 / static_cast<uint64_t>(bits) * kFloat
      : size / element_size(tensor.type) * kFloat;
}

int bits_of(const ModelConfig& config, std::string_view tensor) {
  constexpr std::string_view kWeight = ".weight";
  if (tensor.ends_with(kWeight)) {
    tensor.remove_suffix(kWeight.size());
  }
  const auto quantization = config.quantization.of(tensor);
  return quantization ? quantization->bits : 32;
}

// Of those that are not dropped. Where not all is computed exactly, they are
// held as they are in the file.
uint64_t weight_bytes(
    const WeightFolder& folder,
    const std::set<std::string>& dropped,
    const ModelConfig& config,
    Numerics numerics) {
  uint64_t total = 0;
  for (const auto& [name, tensor] : folder.tensors()) {
    if (!dropped.contains(name)) {
      total += numerics == Numerics::kExact
          ? exact_bytes(name, tensor, bits_of(config, name))
          : tensor.bytes.size();
    }
  }
  return total;
}

// The most that any layer has, of one token.
struct Widths {
  int64_t queries = 0;
  int64_t projected = 0; // queries, keys and values
  int64_t inner = 0;
};

Widths widest(const ModelConfig& config) {
  const GatedDeltaShape& delta = config.gated_delta;
  Widths most;
  most.projected = delta.channels() + int64_t{2} * delta.value_width();
  for (const LayerConfig& layer : config.layers) {
    const int64_t head_dim = config.head_dim_of(layer);
    const int64_t queries = config.num_attention_heads * head_dim;
    const int64_t kv = config.key_value_heads_of(layer) * head_dim;
    most.queries = std::max(most.queries, queries);
    most.projected = std::max(most.projected, queries + 2 * kv);
    most.inner =
        std::max<int64_t>(most.inner, config.intermediate_size_of(layer));
  }
  return most;
}

} // namespace

Result<MemoryPlan> MemoryPlan::of(
    FileSystem& fs,
    const std::string& folder,
    const RunOptions& options,
    int chunk) {
  INGLE_ASSIGN_OR_RETURN(ModelConfig config, read_model_config(fs, folder));
  INGLE_ASSIGN_OR_RETURN(
      const KvQuantizations kv, kv_quantizations(fs, folder, config, options));
  INGLE_ASSIGN_OR_RETURN(const auto weights, WeightFolder::open(fs, folder));
  INGLE_ASSIGN_OR_RETURN(
      const auto dropped, check_weights(config, kv, *weights, folder));
  const bool kernels = uses_kernels(options.numerics);
  const mx::Dtype dtype =
      options.numerics == Numerics::kNative ? mx::bfloat16 : mx::float32;
  KvState caches = make_kv_state(config, kv, dtype, kernels);
  MemoryPlan plan(std::move(config), std::move(caches));
  plan.numerics_ = options.numerics;
  plan.program_bytes_ = program_bytes(fs, folder);
  plan.weight_bytes_ =
      weight_bytes(*weights, dropped, plan.config_, options.numerics);
  plan.chunk_ = chunk;
  return plan;
}

uint64_t MemoryPlan::work_bytes(int64_t positions) const {
  const int64_t hidden = config_.hidden_size;
  const int64_t heads = config_.num_attention_heads;
  const auto [queries, projected, inner] = widest(config_);
  const int64_t inputs =
      int64_t{config_.num_hidden_layers} * config_.layer_inputs.width;
  // Of a mixture, what each of a token's experts takes in and gives: gates and
  // what they multiply, and results.
  const ExpertsConfig& experts = config_.experts;
  const int64_t chosen =
      experts.per_token * (int64_t{2} * experts.intermediate_size + hidden) +
      (experts.shared_intermediate_size > 0
           ? int64_t{2} * experts.shared_intermediate_size + hidden
           : 0) +
      experts.count;
  const uint64_t logits = product(config_.vocab_size, 2 * kFloat);
  if (uses_kernels(numerics_)) {
    // What KernelContext and CpuKernels keep: a layer's input and output, what
    // is between its halves and what is added; inputs of products are two
    // planes of integers with their scales.
    const int64_t floats =
        5 * hidden + std::max(projected, inner) + queries + chosen + inputs;
    const int64_t planes = 5 * std::max({hidden, inner, queries}) / 2;
    return logits + product(chunk_, floats * kFloat + planes);
  }
  // What MLX holds of a layer at a time, all scores and their softmax.
  const int64_t floats =
      6 * hidden + 2 * projected + 3 * inner + 2 * chosen + 3 * inputs;
  return logits + product(chunk_, (floats + 2 * heads * positions) * kFloat);
}

MemoryUse MemoryPlan::at(int64_t positions) const {
  return {
      program_bytes_,
      weight_bytes_,
      caches_.bytes_for(positions, chunk_),
      work_bytes(positions)};
}

int64_t MemoryPlan::max_context(uint64_t usable) const {
  int64_t fits = 0;
  int64_t too_long = int64_t{config_.max_position_embeddings} + 1;
  while (too_long - fits > 1) {
    const int64_t middle = fits + (too_long - fits) / 2;
    (at(middle).total() <= usable ? fits : too_long) = middle;
  }
  return fits;
}

uint64_t usable_memory(uint64_t machine_bytes) {
  return machine_bytes / 4 * 3;
}

} // namespace ingle
