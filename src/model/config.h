// A model folder's config.json, checked.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "kernels/gated_delta.h"
#include "kernels/kernel_set.h"
#include "model/rope_config.h"

namespace ingle {

enum class QuantizationMode {
  kAffine, // scale * code + bias
  kMxfp4 // scale * one of 16 numbers; scales are powers of two
};

// Quantisation of one module: groups of `group_size` values along the input
// share a scale, and a bias where they have any.
struct Quantization {
  int group_size = 64;
  int bits = 4;
  QuantizationMode mode = QuantizationMode::kAffine;

  bool operator==(const Quantization&) const = default;
};

inline constexpr Quantization kMxfp4 = {32, 4, QuantizationMode::kMxfp4};

// The `quantization` object: one default and exceptions by module path.
struct QuantizationConfig {
  std::optional<Quantization> everywhere;
  std::map<std::string, std::optional<Quantization>, std::less<>> overrides;

  // Nothing: the module is not quantised.
  std::optional<Quantization> of(std::string_view module_path) const;
};

// What ingle has done for a family beside running it.
enum class SupportTier {
  kTargeted, // it is one of those that ingle is made and tuned for
  kGeneric, // it runs, as one of many
};

std::string_view to_string(SupportTier tier); // "targeted", "generic"

// RMS norms of queries and keys, before they are rotated.
enum class QkNorm { kNone, kHead, kAllHeads };

// Of a layer, in its order; empty: the layer has none there.
struct NormNames {
  std::string before_attention = "input_layernorm";
  std::string after_attention; // of what is added
  std::string before_mlp = "post_attention_layernorm";
  std::string after_mlp;
};

enum class MlpKind {
  kGated, // gate_proj, up_proj, down_proj
  kFusedGated, // gate_up_proj has the rows of both
  kPlain, // c_fc, c_proj: down(activation(up(x)))
};

struct LayerConfig {
  int window = 0; // positions seen, the token's own included; 0: all
  std::optional<size_t> rope = 0; // which of the model's; none: no positions
  bool is_recurrent = false; // a gated delta net instead of attention
  bool has_experts = false; // instead of one MLP, if not beside it
  // Other than the model's.
  std::optional<int> head_dim{};
  std::optional<int> num_key_value_heads{};
  std::optional<int> intermediate_size{};
  bool values_are_keys = false; // before these are normed: there is no v_proj
  // The layer to whose keys and values it attends; none: it has its own. All
  // that have their own come before all that don't.
  std::optional<size_t> donor{};
};

// Of the layers that have experts.
struct ExpertsConfig {
  int count = 0;
  int per_token = 0; // at most count
  int intermediate_size = 0; // of one
  bool renormalises = false; // a token's weights add up to 1
  int shared_intermediate_size = 0; // of one that all tokens have; 0: none
  bool has_biases = false; // the router, too
  // Beside the layer's MLP, not instead of it; with norms of their own, and
  // scales of the experts' weights.
  bool beside_mlp = false;
  std::string router = "gate"; // its module, as the next
  std::string stacked = "switch_mlp"; // where all experts are one tensor
};

// Of what each layer gets of a token for itself (kernels/layer_inputs.h).
struct LayerInputsConfig {
  int width = 0; // of one layer's; 0: there is none
  int vocab_size = 0; // rows of its table
};

// What the model computes is the decoder of families/decoder.h in the variant
// that these say. Each family (families/families.h) sets them from its own
// fields.
struct ModelConfig {
  std::string model_type; // as the file has it
  SupportTier tier = SupportTier::kGeneric;
  int hidden_size = 0;
  int intermediate_size = 0; // of layers that have an MLP; 0: none has
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int max_position_embeddings = 0; // tokens
  float rms_norm_eps = 0; // of layer norms, too
  bool layer_norms = false; // with biases, instead of RMS norms
  bool fused_qkv = false; // qkv_proj has the rows of all three
  bool qkv_bias = false;
  bool output_bias = false; // of attention
  bool mlp_bias = false;
  MlpKind mlp = MlpKind::kGated;
  QkNorm qk_norm = QkNorm::kNone;
  bool norms_values = false; // each head's, to a root mean square of 1
  bool has_attention_gates = false; // beside queries, in q_proj
  bool has_sinks = false; // of attention's heads
  NormNames norms;
  // A norm multiplies by 1 + its weight. With recurrent layers: as the file has
  // it.
  bool norms_add_one = false;
  Activation activation = Activation::kSilu;
  float embedding_scale = 1;
  float attention_scale = 0; // of the scores: 1 / sqrt(head_dim), if not given
  float attention_soft_cap = 0; // 0: none
  float residual_scale = 1; // of what a layer's two halves add
  float logits_scale = 1;
  float logits_soft_cap = 0; // 0: none
  std::vector<LayerConfig> layers;
  GatedDeltaShape gated_delta; // of recurrent layers
  // Their projections are two, with the rows of each key head together.
  bool fused_gated_delta = false;
  ExpertsConfig experts;
  LayerInputsConfig layer_inputs;
  // What a layer gives is multiplied by its `layer_scalar`, if it has one.
  bool has_layer_scalars = false;
  std::vector<RopeConfig> ropes;
  // Nothing: as the weights have it.
  std::optional<bool> tie_word_embeddings;
  QuantizationConfig quantization;
  // Modules whose names end so are not to be quantised to fewer than 8 bits.
  std::vector<std::string> wide_modules;
  std::vector<TokenId> eos; // the text's and the whole's; may be empty

  int head_dim_of(const LayerConfig& layer) const {
    return layer.head_dim.value_or(head_dim);
  }
  int key_value_heads_of(const LayerConfig& layer) const {
    return layer.num_key_value_heads.value_or(num_key_value_heads);
  }
  int intermediate_size_of(const LayerConfig& layer) const {
    return layer.intermediate_size.value_or(intermediate_size);
  }
  // Of layers that have their own: the first ones.
  size_t cache_count() const;
};

// `origin` is the path of the file, for messages. Sizes are positive; the
// widths of queries, keys and values are at most 2^20.
// Errors: kCorruption (not JSON, a field missing or of the wrong type or out
// of range: the message names it), kUnsupported (a model type or a variant of
// it that ingle does not run: the message names what it does).
Result<ModelConfig> parse_model_config(
    std::string_view json,
    const std::string& origin);

} // namespace ingle
