#include <array>
#include <cmath>

#include "import/model_plan.h"
#include "import/plan_builder.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr std::array<LayerTensor, 13> kLayerTensors = {{
    {"attn_norm.weight", "input_layernorm", TensorShape::kHidden},
    {"attn_q.weight", "self_attn.q_proj", TensorShape::kQuery},
    {"attn_k.weight", "self_attn.k_proj", TensorShape::kKey},
    {"attn_v.weight", "self_attn.v_proj", TensorShape::kKey},
    {"attn_q_norm.weight", "self_attn.q_norm", TensorShape::kHead},
    {"attn_k_norm.weight", "self_attn.k_norm", TensorShape::kHead},
    {"attn_output.weight", "self_attn.o_proj", TensorShape::kOutput},
    {"post_attention_norm.weight",
     "post_attention_layernorm",
     TensorShape::kHidden},
    {"ffn_norm.weight", "pre_feedforward_layernorm", TensorShape::kHidden},
    {"ffn_gate.weight", "mlp.gate_proj", TensorShape::kUp},
    {"ffn_up.weight", "mlp.up_proj", TensorShape::kUp},
    {"ffn_down.weight", "mlp.down_proj", TensorShape::kDown},
    {"post_ffw_norm.weight",
     "post_feedforward_layernorm",
     TensorShape::kHidden},
}};

// What files mean where they don't say it: all models of the family have it.
constexpr int64_t kUsualPattern = 6;
constexpr float kUsualLocalBase = 10000.0f;

Status refuse_soft_cap(const PlanBuilder& builder) {
  const std::string key = builder.key("final_logit_softcapping");
  INGLE_ASSIGN_OR_RETURN(const auto cap, builder.file().find<float>(key));
  return cap.value_or(0.0f) == 0.0f
      ? Status::ok()
      : builder.unsupported(
            "metadata key " + quote_name(key) +
            " caps its logits, which ingle does not support for architecture "
            "'gemma3'");
}

// Every `pattern`-th layer sees all positions.
Status write_windows(PlanBuilder& builder) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  if (builder.file().is_list(builder.key(kPattern))) {
    return builder.unsupported(
        "metadata key " + quote_name(builder.key(kPattern)) +
        " is a list, which ingle does not support");
  }
  INGLE_ASSIGN_OR_RETURN(const auto pattern, builder.find_size(kPattern));
  int64_t window = 0;
  INGLE_RETURN_IF_ERROR(builder.read_size("attention.sliding_window", window));
  INGLE_ASSIGN_OR_RETURN(
      const auto local_base,
      builder.file().find<float>(builder.key("rope.freq_base_swa")));
  const float base = local_base.value_or(kUsualLocalBase);
  if (!(base > 0) || !std::isfinite(base)) {
    return builder.corruption("its local rope base is out of range");
  }
  builder.config()["sliding_window"] = window;
  builder.config()["sliding_window_pattern"] = pattern.value_or(kUsualPattern);
  builder.config()["rope_local_base_freq"] = shortest_decimal(base);
  return Status::ok();
}

// Files don't say by what scores are scaled. It is the width of a head, but in
// the largest of the family, which its number of layers tells.
int64_t scaled_by(const TransformerSizes& sizes) {
  constexpr int64_t kLayersOf27B = 62;
  return sizes.layers == kLayersOf27B ? sizes.hidden / sizes.heads
                                      : sizes.head_dim;
}

} // namespace

Result<ModelPlan> plan_gemma3(const GgufFile& file) {
  PlanBuilder builder(file, "gemma3");
  INGLE_RETURN_IF_ERROR(builder.read_sizes());
  INGLE_RETURN_IF_ERROR(refuse_soft_cap(builder));
  INGLE_RETURN_IF_ERROR(builder.add_tensors(kLayerTensors, true));
  INGLE_RETURN_IF_ERROR(builder.write_config("gemma3_text", 1e6f));
  builder.config()["architectures"] = {"Gemma3ForCausalLM"};
  builder.config()["hidden_activation"] = "gelu_pytorch_tanh";
  builder.config()["query_pre_attn_scalar"] = scaled_by(builder.sizes());
  INGLE_RETURN_IF_ERROR(write_windows(builder));
  return builder.finish();
}

} // namespace ingle
