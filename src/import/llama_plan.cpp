#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "import/dequantize.h"
#include "import/model_plan.h"
#include "import/plan_builder.h"

namespace ingle {
namespace {

constexpr std::array<LayerTensor, 9> kLayerTensors = {{
    {"attn_norm.weight", "input_layernorm", TensorShape::kHidden},
    {"attn_q.weight", "self_attn.q_proj", TensorShape::kQuery, true},
    {"attn_k.weight", "self_attn.k_proj", TensorShape::kKey, true},
    {"attn_v.weight", "self_attn.v_proj", TensorShape::kKey},
    {"attn_output.weight", "self_attn.o_proj", TensorShape::kOutput},
    {"ffn_norm.weight", "post_attention_layernorm", TensorShape::kHidden},
    {"ffn_gate.weight", "mlp.gate_proj", TensorShape::kUp},
    {"ffn_up.weight", "mlp.up_proj", TensorShape::kUp},
    {"ffn_down.weight", "mlp.down_proj", TensorShape::kDown},
}};

// The divisor of each rotary frequency under the "llama3" scaling.
std::vector<float> llama3_divisors(
    int64_t head_dim,
    float theta,
    double factor,
    double original_context) {
  constexpr double kLowFactor = 1;
  constexpr double kHighFactor = 4;
  std::vector<float> divisors;
  for (int64_t i = 0; i < head_dim; i += 2) {
    const double exponent =
        static_cast<double>(i) / static_cast<double>(head_dim);
    const double wavelength =
        2 * std::numbers::pi * std::pow(static_cast<double>(theta), exponent);
    const double smooth = (original_context / wavelength - kLowFactor) /
        (kHighFactor - kLowFactor);
    const double kept = std::clamp(smooth, 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - kept) / factor + kept)));
  }
  return divisors;
}

bool is_close(
    const std::vector<float>& found,
    const std::vector<float>& expected) {
  constexpr float kTolerance = 1e-4f; // relative; converters compute in f32
  for (size_t i = 0; i < found.size(); ++i) {
    if (!(std::abs(found[i] - expected[i]) <= kTolerance * expected[i])) {
      return false;
    }
  }
  return true;
}

// rope_freqs.weight divides each rotary frequency. Converters write it for
// the "llama3" scaling and drop the parameters that it was made from; these
// are found again by trying the ones that models use.
Status replace_rope_freqs(PlanBuilder& builder) {
  const GgufTensor* tensor = builder.file().find_tensor("rope_freqs.weight");
  if (tensor == nullptr) {
    return Status::ok();
  }
  const std::string name = "tensor 'rope_freqs.weight'";
  const int64_t head_dim = builder.sizes().head_dim;
  if (tensor->type != GgmlType::kF32 ||
      tensor->shape != std::vector{head_dim / 2}) {
    return builder.corruption(
        name + " is not one f32 for each rotary frequency");
  }
  if (builder.config().contains("rope_scaling")) {
    return builder.unsupported(name + " together with linear rope scaling");
  }
  std::vector<float> divisors(static_cast<size_t>(tensor->columns()));
  dequantize(tensor->type, tensor->bytes, divisors);
  if (std::all_of(divisors.begin(), divisors.end(), [](float divisor) {
        return divisor == 1.0f;
      })) {
    builder.replace(*tensor, "nothing: it scales by 1");
    return Status::ok();
  }
  // The last is the longest wavelength, which gets the whole factor.
  const double factor = shortest_decimal(divisors.back());
  for (const int original : {8192, 4096, 16384, 32768, 131072}) {
    if (is_close(
            divisors,
            llama3_divisors(head_dim, builder.theta(), factor, original))) {
      builder.config()["rope_scaling"] = {
          {"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", original}};
      builder.replace(*tensor, "config.json's rope_scaling");
      return Status::ok();
    }
  }
  return builder.unsupported(
      name + " is a rope scaling that ingle does not recognise");
}

} // namespace

Result<ModelPlan> plan_llama(const GgufFile& file) {
  PlanBuilder builder(file, "llama");
  INGLE_RETURN_IF_ERROR(builder.read_sizes());
  INGLE_RETURN_IF_ERROR(builder.add_tensors(kLayerTensors, false));
  INGLE_RETURN_IF_ERROR(builder.write_config("llama", 10000.0f));
  builder.config()["architectures"] = {"LlamaForCausalLM"};
  builder.config()["hidden_act"] = "silu";
  builder.config()["mlp_bias"] = false;
  INGLE_RETURN_IF_ERROR(replace_rope_freqs(builder));
  return builder.finish();
}

} // namespace ingle
