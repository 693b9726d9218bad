#include "model/testing/tiny_llama.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "text/testing/tiny_tokenizer.h"
#include "weights/safetensors_writer.h"
#include "weights/tensor.h"

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

static_assert(std::endian::native == std::endian::little);

struct Matrix {
  std::string_view module;
  int rows;
  int columns;
  int exponent; // weights are uniform in +-2^exponent / 2
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

// SplitMix64, seeded with the FNV-1a-64 of a tensor's name.
class Draws {
 public:
  explicit Draws(std::string_view name) {
    for (const char c : name) {
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Uniform in [-0.5, 0.5), in steps of 2^-24.
  double centred() {
    return std::ldexp(static_cast<double>(next() >> 40), -24) - 0.5;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

struct Tensor {
  TensorSpec spec;
  std::vector<std::byte> bytes;
};

template <typename T>
Tensor tensor(
    std::string name,
    TensorType type,
    std::vector<int64_t> shape,
    const std::vector<T>& values) {
  const ByteView bytes = std::as_bytes(std::span(values));
  return {
      {std::move(name), type, std::move(shape)}, {bytes.begin(), bytes.end()}};
}

Tensor norm(const std::string& name) {
  Draws draws(name);
  std::vector<float> values(kHidden);
  for (float& value : values) {
    value = static_cast<float>(1.0 + 0.25 * draws.centred());
  }
  return tensor(name, TensorType::kF32, {kHidden}, values);
}

Tensor dense(const std::string& module, const Matrix& matrix) {
  const std::string name = module + ".weight";
  Draws draws(name);
  std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.columns));
  for (float& value : values) {
    value = static_cast<float>(std::ldexp(draws.centred(), matrix.exponent));
  }
  return tensor(name, TensorType::kF32, {matrix.rows, matrix.columns}, values);
}

// Draws the packed form itself, so that there is no rounding to agree on.
void add_quantised(
    const std::string& module,
    const Matrix& matrix,
    int bits,
    std::vector<Tensor>& out) {
  const int words = matrix.columns * bits / 32;
  Draws weight_draws(module + ".weight");
  std::vector<uint32_t> packed(static_cast<size_t>(matrix.rows * words));
  for (uint32_t& word : packed) {
    word = static_cast<uint32_t>(weight_draws.next() >> 32);
  }

  // f16 patterns: 2^exponent * (1 + mantissa / 64), and about -2^(bits - 1)
  // times that.
  const int groups = matrix.columns / kGroup;
  const auto exponent = static_cast<uint64_t>(15 + matrix.exponent - 1 - bits);
  const uint64_t bias_exponent = exponent + static_cast<uint64_t>(bits) - 1;
  Draws scale_draws(module + ".scales");
  std::vector<uint16_t> scales;
  std::vector<uint16_t> biases;
  for (int i = 0; i < matrix.rows * groups; ++i) {
    const uint64_t u = scale_draws.next();
    const uint64_t mantissa = u >> 58;
    const uint64_t nudged = mantissa ^ (u >> 48 & 7);
    scales.push_back(static_cast<uint16_t>(exponent << 10 | mantissa << 4));
    biases.push_back(
        static_cast<uint16_t>(0x8000 | bias_exponent << 10 | nudged << 4));
  }

  out.push_back(tensor(
      module + ".weight", TensorType::kU32, {matrix.rows, words}, packed));
  out.push_back(tensor(
      module + ".scales", TensorType::kF16, {matrix.rows, groups}, scales));
  out.push_back(tensor(
      module + ".biases", TensorType::kF16, {matrix.rows, groups}, biases));
}

std::vector<Tensor> make_tensors(const TinyLlamaOptions& options) {
  std::vector<Tensor> tensors;
  const auto add = [&](const std::string& module, const Matrix& matrix) {
    if (options.quantised) {
      const int bits = matrix.module == kEmbedding.module ? 8 : 4;
      add_quantised(module, matrix, bits, tensors);
    } else {
      tensors.push_back(dense(module, matrix));
    }
  };
  add(std::string(kEmbedding.module), kEmbedding);
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const Matrix& matrix : kLayerMatrices) {
      add(prefix + std::string(matrix.module), matrix);
    }
    tensors.push_back(norm(prefix + "input_layernorm.weight"));
    tensors.push_back(norm(prefix + "post_attention_layernorm.weight"));
  }
  tensors.push_back(norm("model.norm.weight"));
  if (!options.tied) {
    add(std::string(kHead.module), kHead);
  }
  // Wide elements first, as the writer asks.
  std::stable_partition(tensors.begin(), tensors.end(), [](const Tensor& t) {
    return t.spec.type != TensorType::kF16;
  });
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

Status write_weights(
    FileSystem& fs,
    const std::string& path,
    const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) {
    specs.push_back(tensor.spec);
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto writer, SafetensorsWriter::create(fs, path, std::move(specs)));
  for (const Tensor& tensor : tensors) {
    INGLE_RETURN_IF_ERROR(writer->append(tensor.spec.name, tensor.bytes));
  }
  return writer->finish();
}

} // namespace

Status write_tiny_llama(
    FileSystem& fs,
    const std::string& folder,
    const TinyLlamaOptions& options) {
  const auto write = [&](const char* name, const std::string& text) {
    return write_file(fs, join_path(folder, name), as_bytes(text));
  };
  INGLE_RETURN_IF_ERROR(fs.create_directory(folder));
  INGLE_RETURN_IF_ERROR(write("config.json", config_json(options)));
  if (options.tokenizer) {
    INGLE_RETURN_IF_ERROR(write("tokenizer.json", tokenizer_json()));
    INGLE_RETURN_IF_ERROR(
        write("tokenizer_config.json", tokenizer_config_json()));
  }
  return write_weights(
      fs, join_path(folder, "model.safetensors"), make_tensors(options));
}

} // namespace ingle
