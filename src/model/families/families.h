// The families of models: what each says of the decoder (families/decoder.h),
// in its own fields of config.json.
//
// Source: the classes of the same names in Hugging Face transformers, and
// mlx-lm, which the goldens are made with.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/field_reader.h"
#include "model/rope_fields.h"

namespace ingle {

struct NormEps {
  const char* key = "rms_norm_eps";
  std::optional<float> usual{}; // where the file has none; none: it has to
};

struct Family {
  std::string_view model_type;
  RopeDefaults rope{};
  // Sets what the family has beside the fields that all have, and what it
  // has otherwise where they are absent. `config` has the common ones.
  // Errors: kCorruption, naming file and field; or they are left in `fields`.
  Status (*read)(
      FieldReader& fields,
      const std::string& origin,
      ModelConfig& config);
  // Layers with a window are its own affair; else they are refused.
  bool takes_layer_types = false;
  NormEps norm_eps{};
  // A JSON object: what files leave out of their text_config.
  std::string_view usual = "{}";
  // Its text_config may be of any family: that which its model_type names.
  bool is_wrapper = false;
  SupportTier tier = SupportTier::kGeneric;
};

struct NamedSize {
  const char* key = "";
  int value = 0;
};

// Whether heads of queries can share heads of keys, and both can be turned.
// Errors: kCorruption, naming the field.
Status check_heads(
    int attention_heads,
    const NamedSize& key_value_heads,
    const NamedSize& head_dim,
    const std::string& origin);

// Null: there is none.
const Family* find_family(std::string_view model_type);

// What a model type that is not supported is to those who run it; empty: no
// other. For messages.
std::string_view other_name_of(std::string_view model_type);

// "a, b, c": for messages.
std::string supported_model_types();

// The activation that `key` names, `usual` where it is absent. Errors:
// kUnsupported.
Status read_activation(
    FieldReader&,
    const std::string& origin,
    const char* key,
    Activation usual,
    ModelConfig&);

// What layer_types says, where it is there: for each layer whether it has a
// window. Errors: kUnsupported (another type of layer), kCorruption.
Result<std::optional<std::vector<bool>>> read_windowed_layers(
    FieldReader&,
    const std::string& origin,
    const ModelConfig&);

// Makes these layers ones that have a window of so many positions, and a rope
// of their own.
void set_windows(
    const std::vector<bool>& windowed,
    int window,
    const RopeConfig& rope,
    ModelConfig&);

// The layers that layer_types says have a window of sliding_window positions,
// and the rope that is said of such layers.
Status read_windows(FieldReader&, const std::string& origin, ModelConfig&);

// Errors: kUnsupported where layer_types says that a layer has a window, and
// those of read_windowed_layers().
Status
refuse_windows(FieldReader&, const std::string& origin, const ModelConfig&);

// What layers of all gemmas from the second on have in common, and the scale of
// embeddings.
Status read_gemma_layers(FieldReader&, const std::string& origin, ModelConfig&);

// What both qwens have in common: silu, and no windows.
Status read_qwen_layers(FieldReader&, const std::string& origin, ModelConfig&);

// What all qwens with gated delta nets have in common but their second halves.
Status
read_hybrid_layers(FieldReader&, const std::string& origin, ModelConfig&);

// What a family calls the sizes of its experts.
struct ExpertKeys {
  const char* count;
  const char* per_token;
  const char* intermediate_size = "moe_intermediate_size";
};

Status read_experts(
    FieldReader&,
    const std::string& origin,
    const ExpertKeys& keys,
    ExpertsConfig& experts);

// The experts that qwens have; `renormalises`: where the file does not say.
Status read_qwen_experts(
    FieldReader&,
    const std::string& origin,
    bool renormalises,
    ModelConfig&);
// The expert that all tokens have beside them.
Status
read_shared_expert(FieldReader&, const std::string& origin, ModelConfig&);

// Which layers have experts: every `decoder_sparse_step`-th, but for those in
// `mlp_only_layers`.
Status
read_sparse_layers(FieldReader&, const std::string& origin, ModelConfig&);

// What both olmos have in common.
Status read_olmo_layers(FieldReader&, const std::string& origin, ModelConfig&);

// The biases of llama's linears, and silu.
Status read_llama_layers(FieldReader&, const std::string& origin, ModelConfig&);

// Each in a file of its name.
Status read_gemma(FieldReader&, const std::string& origin, ModelConfig&);
Status read_gemma2(FieldReader&, const std::string& origin, ModelConfig&);
Status read_gemma3(FieldReader&, const std::string& origin, ModelConfig&);
Status read_gemma4(FieldReader&, const std::string& origin, ModelConfig&);
Status read_glm4(FieldReader&, const std::string& origin, ModelConfig&);
Status read_gpt_oss(FieldReader&, const std::string& origin, ModelConfig&);
Status read_granite(FieldReader&, const std::string& origin, ModelConfig&);
Status read_llama(FieldReader&, const std::string& origin, ModelConfig&);
Status read_ministral3(FieldReader&, const std::string& origin, ModelConfig&);
Status read_olmo2(FieldReader&, const std::string& origin, ModelConfig&);
Status read_olmo3(FieldReader&, const std::string& origin, ModelConfig&);
Status read_phi3(FieldReader&, const std::string& origin, ModelConfig&);
Status read_qwen2(FieldReader&, const std::string& origin, ModelConfig&);
Status read_qwen3(FieldReader&, const std::string& origin, ModelConfig&);
Status read_qwen3_5(FieldReader&, const std::string& origin, ModelConfig&);
Status read_qwen3_moe(FieldReader&, const std::string& origin, ModelConfig&);
Status read_qwen3_next(FieldReader&, const std::string& origin, ModelConfig&);
Status read_smollm3(FieldReader&, const std::string& origin, ModelConfig&);
Status read_starcoder2(FieldReader&, const std::string& origin, ModelConfig&);

} // namespace ingle
