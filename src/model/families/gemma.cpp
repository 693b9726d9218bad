#include <cmath>

#include "base/float16.h"
#include "model/families/families.h"

namespace ingle {
namespace {

// sqrt(hidden), rounded to bf16: the type that the models were trained in has
// rounded it, and what runs them does.
float embedding_scale(int hidden_size) {
  return bf16_to_f32(f32_to_bf16(std::sqrt(static_cast<float>(hidden_size))));
}

void read_basics(FieldReader& fields, ModelConfig& config) {
  config.head_dim = fields.size("head_dim");
  config.norms_add_one = true;
  config.embedding_scale = embedding_scale(config.hidden_size);
}

} // namespace

// The gelu is the precise one, as mlx-lm has it: its authors' files say now
// this, now the other.
Status read_gemma(
    FieldReader& fields,
    const std::string& /*origin*/,
    ModelConfig& config) {
  read_basics(fields, config);
  config.tie_word_embeddings = true; // whatever the file says
  config.activation = Activation::kGelu;
  return fields.status();
}

Status read_gemma_layers(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  read_basics(fields, config);
  config.norms = {
      "input_layernorm",
      "post_attention_layernorm",
      "pre_feedforward_layernorm",
      "post_feedforward_layernorm"};
  return read_activation(
      fields, origin, "hidden_activation", Activation::kGeluTanh, config);
}

} // namespace ingle
