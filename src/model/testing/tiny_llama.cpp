#include "model/testing/tiny_llama.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/testing/tiny_model.h"
#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

constexpr int kVocab = 288;
constexpr int kHidden = 64;
constexpr int kLayers = 3;
constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 16;
constexpr int kMlp = 128;
constexpr int kContext = 512;
constexpr int kGroup = 32;
constexpr TokenId kBos = kTinyImStart;
constexpr TokenId kEos = kTinyImEnd;

// Two letters each, as many as bring the tokenizer to kVocab tokens.
constexpr std::array<std::string_view, 29> kMerges = {
    "th", "he", "in", "er", "an", "re", "on", "at", "en", "nd",
    "ti", "es", "or", "te", "of", "ed", "is", "it", "al", "ar",
    "st", "to", "nt", "ng", "se", "ha", "as", "ou", "io"};
static_assert(kTinyVocabSize + kMerges.size() == kVocab);

struct Matrix {
  std::string_view module;
  int rows;
  int columns;
  int exponent;
};

constexpr Matrix kEmbedding = {"model.embed_tokens", kVocab, kHidden, -1};
constexpr Matrix kHead = {"lm_head", kVocab, kHidden, 0};
constexpr std::array<Matrix, 7> kLayerMatrices = {{
    {"self_attn.q_proj", kHeads* kHeadDim, kHidden, 1},
    {"self_attn.k_proj", kKvHeads* kHeadDim, kHidden, 1},
    {"self_attn.v_proj", kKvHeads* kHeadDim, kHidden, 0},
    {"self_attn.o_proj", kHidden, kHeads* kHeadDim, 0},
    {"mlp.gate_proj", kMlp, kHidden, 0},
    {"mlp.up_proj", kMlp, kHidden, 0},
    {"mlp.down_proj", kHidden, kMlp, 0},
}};

std::vector<TinyTensor> tensors_of(const TinyLlamaOptions& options) {
  std::vector<TinyTensor> tensors;
  const auto add = [&](const std::string& prefix, const Matrix& matrix) {
    tensors.push_back(
        {prefix + std::string(matrix.module) + ".weight",
         {matrix.rows, matrix.columns},
         matrix.exponent});
  };
  const auto add_norm = [&](const std::string& name) {
    tensors.push_back({name + ".weight", {kHidden}});
  };
  add("", kEmbedding);
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const Matrix& matrix : kLayerMatrices) {
      add(prefix, matrix);
    }
    add_norm(prefix + "input_layernorm");
    add_norm(prefix + "post_attention_layernorm");
  }
  add_norm("model.norm");
  if (!options.tied) {
    add("", kHead);
  }
  return tensors;
}

std::string config_json(const TinyLlamaOptions& options) {
  nlohmann::ordered_json config = {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"hidden_size", kHidden},
      {"num_hidden_layers", kLayers},
      {"num_attention_heads", kHeads},
      {"num_key_value_heads", kKvHeads},
      {"head_dim", kHeadDim},
      {"intermediate_size", kMlp},
      {"vocab_size", kVocab},
      {"max_position_embeddings", kContext},
      {"rms_norm_eps", 1e-5},
      {"rope_theta", 10000.0},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"tie_word_embeddings", options.tied},
      {"bos_token_id", kBos},
      {"eos_token_id", kEos},
  };
  if (options.quantised) {
    config["quantization"] = {
        {"group_size", kGroup},
        {"mode", "affine"},
        {"bits", 4},
        {kEmbedding.module,
         {{"group_size", kGroup}, {"mode", "affine"}, {"bits", 8}}},
    };
  }
  return config.dump(2) + "\n";
}

std::string tokenizer_json() {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const std::string_view pair : kMerges) {
    merges.emplace_back(pair.substr(0, 1), pair.substr(1));
  }
  return tiny_tokenizer_json(merges);
}

std::string tokenizer_config_json() {
  const nlohmann::ordered_json config = {
      {"tokenizer_class", "PreTrainedTokenizerFast"},
      {"bos_token", "<|im_start|>"},
      {"eos_token", "<|im_end|>"},
      {"model_max_length", kContext},
      {"chat_template", kTinyChatTemplate},
  };
  return config.dump(2) + "\n";
}

} // namespace

Status write_tiny_llama(
    FileSystem& fs,
    const std::string& folder,
    const TinyLlamaOptions& options) {
  const auto write = [&](const char* name, const std::string& text) {
    return write_file(fs, join_path(folder, name), as_bytes(text));
  };
  INGLE_RETURN_IF_ERROR(write_tiny_model(
      fs,
      folder,
      {config_json(options), tensors_of(options), options.quantised}));
  if (!options.tokenizer) {
    return Status::ok();
  }
  INGLE_RETURN_IF_ERROR(write("tokenizer.json", tokenizer_json()));
  return write("tokenizer_config.json", tokenizer_config_json());
}

} // namespace ingle
