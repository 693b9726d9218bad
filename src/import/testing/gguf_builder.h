// Makes GGUF files for tests, good ones and bad ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/affine.h"
#include "import/ggml_types.h"
#include "import/gguf_reader.h"

namespace ingle {

// Little-endian bytes of numbers; length and bytes of strings.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  ByteWriter& text(std::string_view value) {
    number<uint64_t>(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const {
    return bytes_;
  }

 private:
  std::string bytes_;
};

class GgufBuilder {
 public:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape; // outermost first
    GgmlType type;
    std::string bytes;
  };

  void set(const std::string& key, uint32_t value);
  void set(const std::string& key, float value);
  void set(const std::string& key, bool value);
  void set(const std::string& key, const char* value);
  void set(const std::string& key, const std::vector<std::string>& values);
  void set(const std::string& key, const std::vector<float>& values);
  void set(const std::string& key, const std::vector<int32_t>& values);
  // The type's number and the value as they stand in the file.
  void set_raw(const std::string& key, std::string type_and_value);
  void erase(const std::string& key);

  void add_tensor(
      const std::string& name,
      const std::vector<int64_t>& shape,
      GgmlType type);
  std::vector<Tensor>& tensors() {
    return tensors_;
  }
  Tensor& tensor(const std::string& name);

  std::string build() const;

 private:
  std::map<std::string, std::string> metadata_; // key -> type and value
  std::vector<Tensor> tensors_;
};

// Blocks of random bytes whose f16 scales are finite, like those of a model;
// the same for the same seed.
std::string random_blocks(GgmlType type, int64_t elements, uint32_t seed);

// A llama of one layer with a byte-level tokenizer; matrices of `type`.
// `hidden` is a multiple of the type's block.
GgufBuilder tiny_llama(GgmlType type, int64_t hidden);

// The same of a gemma3, with four heads of 16; `hidden` and 64 are multiples of
// the type's block.
GgufBuilder tiny_gemma3(GgmlType type, int64_t hidden, int64_t layers);

// What MLX computes in f32 from the quantised form: scale * code + bias.
std::vector<float> from_affine(
    int bits,
    TensorType scale_type,
    ByteView codes,
    ByteView scales,
    ByteView biases);

} // namespace ingle
