#include "import/testing/gguf_builder.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/float16.h"

namespace ingle {
namespace {

constexpr size_t kAlignment = 32;

ByteWriter typed(GgufValueType type) {
  return ByteWriter().number(static_cast<uint32_t>(type));
}

ByteWriter array_of(GgufValueType type, size_t count) {
  return typed(GgufValueType::kArray)
      .number(static_cast<uint32_t>(type))
      .number<uint64_t>(count);
}

void pad(std::string& bytes) {
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment);
}

// Where f16 numbers stand in a block.
std::vector<size_t> scale_offsets(GgmlType type) {
  switch (type) {
    case GgmlType::kQ4_1:
    case GgmlType::kQ5_1:
    case GgmlType::kQ4_K:
    case GgmlType::kQ5_K:
      return {0, 2};
    case GgmlType::kQ2_K:
      return {80, 82};
    case GgmlType::kQ3_K:
      return {108};
    case GgmlType::kQ6_K:
      return {208};
    default:
      return {0};
  }
}

// Byte-level, of five tokens.
void set_tokenizer(GgufBuilder& file) {
  file.set("tokenizer.ggml.model", "gpt2");
  file.set("tokenizer.ggml.pre", "smollm");
  file.set(
      "tokenizer.ggml.tokens",
      std::vector<std::string>{"<|end|>", "a", "b", "ab", "\xc4\xa0"});
  file.set("tokenizer.ggml.token_type", std::vector<int32_t>{3, 1, 1, 1, 1});
  file.set("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  file.set("tokenizer.ggml.bos_token_id", 0u);
  file.set("tokenizer.ggml.eos_token_id", 0u);
  file.set("tokenizer.chat_template", "{{ messages }}");
}

} // namespace

void GgufBuilder::set(const std::string& key, uint32_t value) {
  set_raw(key, typed(GgufValueType::kU32).number(value).bytes());
}
void GgufBuilder::set(const std::string& key, float value) {
  set_raw(key, typed(GgufValueType::kF32).number(value).bytes());
}
void GgufBuilder::set(const std::string& key, bool value) {
  set_raw(key, typed(GgufValueType::kBool).number(value).bytes());
}
void GgufBuilder::set(const std::string& key, const char* value) {
  set_raw(key, typed(GgufValueType::kString).text(value).bytes());
}
void GgufBuilder::set(
    const std::string& key,
    const std::vector<std::string>& values) {
  ByteWriter writer = array_of(GgufValueType::kString, values.size());
  for (const std::string& value : values) {
    writer.text(value);
  }
  set_raw(key, writer.bytes());
}
void GgufBuilder::set(
    const std::string& key,
    const std::vector<float>& values) {
  ByteWriter writer = array_of(GgufValueType::kF32, values.size());
  for (const float value : values) {
    writer.number(value);
  }
  set_raw(key, writer.bytes());
}
void GgufBuilder::set(
    const std::string& key,
    const std::vector<int32_t>& values) {
  ByteWriter writer = array_of(GgufValueType::kI32, values.size());
  for (const int32_t value : values) {
    writer.number(value);
  }
  set_raw(key, writer.bytes());
}
void GgufBuilder::set_raw(const std::string& key, std::string type_and_value) {
  metadata_[key] = std::move(type_and_value);
}
void GgufBuilder::erase(const std::string& key) {
  metadata_.erase(key);
}

void GgufBuilder::add_tensor(
    const std::string& name,
    const std::vector<int64_t>& shape,
    GgmlType type) {
  int64_t elements = 1;
  for (const int64_t dim : shape) {
    elements *= dim;
  }
  const auto seed = static_cast<uint32_t>(tensors_.size());
  tensors_.push_back({name, shape, type, random_blocks(type, elements, seed)});
}

GgufBuilder::Tensor& GgufBuilder::tensor(const std::string& name) {
  return *std::find_if(tensors_.begin(), tensors_.end(), [&](auto& tensor) {
    return tensor.name == name;
  });
}

std::string GgufBuilder::build() const {
  ByteWriter header;
  header.number<uint32_t>(3)
      .number<uint64_t>(tensors_.size())
      .number<uint64_t>(metadata_.size());
  std::string file = "GGUF" + header.bytes();
  for (const auto& [key, value] : metadata_) {
    file += ByteWriter().text(key).bytes() + value;
  }
  std::string data;
  for (const Tensor& tensor : tensors_) {
    ByteWriter info;
    info.text(tensor.name).number(static_cast<uint32_t>(tensor.shape.size()));
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) {
      info.number(*dim);
    }
    info.number(static_cast<uint32_t>(tensor.type))
        .number<uint64_t>(data.size());
    file += info.bytes();
    data += tensor.bytes;
    pad(data);
  }
  pad(file);
  return file + data;
}

std::string random_blocks(GgmlType type, int64_t elements, uint32_t seed) {
  const GgmlTypeInfo& info = ggml_type_info(type);
  const size_t blocks = static_cast<size_t>(elements) / info.block_elements;
  std::mt19937 random(seed * 31 + static_cast<uint32_t>(type));
  std::string bytes;
  for (size_t i = 0; i < blocks; ++i) {
    std::string block(info.block_bytes, '\0');
    std::generate(block.begin(), block.end(), [&] {
      return static_cast<char>(random());
    });
    if (type == GgmlType::kF32) {
      const float value = static_cast<float>(random() % 2001) / 1000 - 1;
      std::memcpy(block.data(), &value, sizeof(value));
    } else if (type == GgmlType::kBF16) {
      const uint16_t value = 0x3f00 | (random() % 256); // 0.5 to 2
      std::memcpy(block.data(), &value, sizeof(value));
    } else {
      for (const size_t at : scale_offsets(type)) {
        // Both signs, subnormals too, below 256: the bias of Q8_0 is 128
        // times as large.
        const auto value = static_cast<uint16_t>(
            random() % 23 << 10 | random() % 1024 | (random() % 2 << 15));
        std::memcpy(block.data() + at, &value, sizeof(value));
      }
    }
    bytes += block;
  }
  return bytes;
}

GgufBuilder tiny_llama(GgmlType type, int64_t hidden) {
  GgufBuilder file;
  const auto width = static_cast<uint32_t>(hidden);
  file.set("general.architecture", "llama");
  file.set("llama.block_count", 1u);
  file.set("llama.embedding_length", width);
  file.set("llama.feed_forward_length", 2 * width);
  file.set("llama.attention.head_count", 4u);
  file.set("llama.attention.head_count_kv", 2u);
  file.set("llama.context_length", 128u);
  file.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  set_tokenizer(file);
  file.add_tensor("token_embd.weight", {5, hidden}, type);
  file.add_tensor("output_norm.weight", {hidden}, GgmlType::kF32);
  file.add_tensor("blk.0.attn_norm.weight", {hidden}, GgmlType::kF32);
  file.add_tensor("blk.0.attn_q.weight", {hidden, hidden}, type);
  file.add_tensor("blk.0.attn_k.weight", {hidden / 2, hidden}, type);
  file.add_tensor("blk.0.attn_v.weight", {hidden / 2, hidden}, type);
  file.add_tensor("blk.0.attn_output.weight", {hidden, hidden}, type);
  file.add_tensor("blk.0.ffn_norm.weight", {hidden}, GgmlType::kF32);
  file.add_tensor("blk.0.ffn_gate.weight", {2 * hidden, hidden}, type);
  file.add_tensor("blk.0.ffn_up.weight", {2 * hidden, hidden}, type);
  file.add_tensor("blk.0.ffn_down.weight", {hidden, 2 * hidden}, type);
  return file;
}

GgufBuilder tiny_gemma3(GgmlType type, int64_t hidden, int64_t layers) {
  constexpr int64_t kHeadDim = 16;
  GgufBuilder file;
  const auto width = static_cast<uint32_t>(hidden);
  file.set("general.architecture", "gemma3");
  file.set("gemma3.block_count", static_cast<uint32_t>(layers));
  file.set("gemma3.embedding_length", width);
  file.set("gemma3.feed_forward_length", 2 * width);
  file.set("gemma3.attention.head_count", 4u);
  file.set("gemma3.attention.head_count_kv", 1u);
  file.set("gemma3.attention.key_length", 16u);
  file.set("gemma3.attention.value_length", 16u);
  file.set("gemma3.attention.sliding_window", 8u);
  file.set("gemma3.context_length", 128u);
  file.set("gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
  set_tokenizer(file);
  file.add_tensor("token_embd.weight", {5, hidden}, type);
  file.add_tensor("output_norm.weight", {hidden}, GgmlType::kF32);
  for (int64_t i = 0; i < layers; ++i) {
    const auto add = [&](const char* name, const std::vector<int64_t>& shape) {
      file.add_tensor(
          "blk." + std::to_string(i) + "." + name + ".weight",
          shape,
          shape.size() == 1 ? GgmlType::kF32 : type);
    };
    add("attn_norm", {hidden});
    add("attn_q", {4 * kHeadDim, hidden});
    add("attn_k", {kHeadDim, hidden});
    add("attn_v", {kHeadDim, hidden});
    add("attn_q_norm", {kHeadDim});
    add("attn_k_norm", {kHeadDim});
    add("attn_output", {hidden, 4 * kHeadDim});
    add("post_attention_norm", {hidden});
    add("ffn_norm", {hidden});
    add("ffn_gate", {2 * hidden, hidden});
    add("ffn_up", {2 * hidden, hidden});
    add("ffn_down", {hidden, 2 * hidden});
    add("post_ffw_norm", {hidden});
  }
  return file;
}

std::vector<float> from_affine(
    int bits,
    TensorType scale_type,
    ByteView codes,
    ByteView scales,
    ByteView biases) {
  const auto load = [&](ByteView from, size_t group) {
    if (scale_type == TensorType::kF16) {
      return load_f16(from.data() + 2 * group);
    }
    float value;
    std::memcpy(&value, from.data() + 4 * group, sizeof(value));
    return value;
  };
  const auto width = static_cast<size_t>(bits);
  std::vector<float> values(codes.size() * 8 / width);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t code = 0;
    for (size_t b = 0; b < width; ++b) {
      const size_t bit = i * width + b;
      code |= (static_cast<uint32_t>(codes[bit / 8]) >> (bit % 8) & 1) << b;
    }
    values[i] = load(scales, i / kAffineGroup) * static_cast<float>(code) +
        load(biases, i / kAffineGroup);
  }
  return values;
}

} // namespace ingle
