#include "model/testing/tiny_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "base/float16.h"
#include "weights/safetensors_writer.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr int kGroup = 32;

static_assert(std::endian::native == std::endian::little);

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

size_t count_of(const TinyTensor& spec) {
  size_t count = 1;
  for (const int64_t size : spec.shape) {
    count *= static_cast<size_t>(size);
  }
  return count;
}

Tensor dense(const TinyTensor& spec, TensorType type) {
  const size_t count = count_of(spec);
  Draws draws(spec.name);
  std::vector<float> values(count);
  for (float& value : values) {
    const double drawn = draws.centred();
    value = static_cast<float>(
        spec.exponent ? std::ldexp(drawn, *spec.exponent) : 1 + 0.25 * drawn);
  }
  if (type == TensorType::kF32) {
    return tensor(spec.name, type, spec.shape, values);
  }
  std::vector<uint16_t> halves(count);
  std::ranges::transform(values, halves.begin(), [&](float value) {
    return type == TensorType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
  });
  return tensor(spec.name, type, spec.shape, halves);
}

template <typename T>
Tensor drawn(const TinyTensor& spec, TensorType type) {
  const bool is_exponent = spec.form == TinyForm::kExponents;
  const int bits = is_exponent ? 4 : 8 * static_cast<int>(sizeof(T));
  Draws draws(spec.name);
  std::vector<T> values(count_of(spec));
  for (T& value : values) {
    const uint64_t top = draws.next() >> (64 - bits);
    value = static_cast<T>(is_exponent ? 122 + top % 3 : top);
  }
  return tensor(spec.name, type, spec.shape, values);
}

// Or as many as there are experts. A convolution has its taps last.
bool is_matrix(const TinyTensor& spec) {
  return spec.name.ends_with(".weight") &&
      (spec.shape.size() == 2 ||
       (spec.shape.size() == 3 && spec.shape[2] % kGroup == 0));
}

// Draws the packed form itself, so that there is no rounding to agree on.
void add_quantised(const TinyTensor& spec, std::vector<Tensor>& out) {
  const std::string module = spec.name.substr(
      0, spec.name.size() - std::string_view(".weight").size());
  const bool is_wide = module.ends_with("embed_tokens") ||
      module.ends_with(".mlp.gate") || module.ends_with("_expert_gate") ||
      module.ends_with(".mlp.router") || module.ends_with(".router.proj");
  const int bits = is_wide ? 8 : 4;
  int64_t rows = 1;
  for (const int64_t size : spec.shape) {
    rows *= size;
  }
  rows /= spec.shape.back();
  const int64_t words = spec.shape.back() * bits / 32;
  Draws weight_draws(spec.name);
  std::vector<uint32_t> packed(static_cast<size_t>(rows * words));
  for (uint32_t& word : packed) {
    word = static_cast<uint32_t>(weight_draws.next() >> 32);
  }

  // f16 patterns: 2^exponent * (1 + mantissa / 64), and about -2^(bits - 1)
  // times that.
  const int64_t groups = spec.shape.back() / kGroup;
  const auto exponent = static_cast<uint64_t>(15 + *spec.exponent - 1 - bits);
  const uint64_t bias_exponent = exponent + static_cast<uint64_t>(bits) - 1;
  Draws scale_draws(module + ".scales");
  std::vector<uint16_t> scales;
  std::vector<uint16_t> biases;
  for (int64_t i = 0; i < rows * groups; ++i) {
    const uint64_t u = scale_draws.next();
    const uint64_t mantissa = u >> 58;
    const uint64_t nudged = mantissa ^ (u >> 48 & 7);
    scales.push_back(static_cast<uint16_t>(exponent << 10 | mantissa << 4));
    biases.push_back(
        static_cast<uint16_t>(0x8000 | bias_exponent << 10 | nudged << 4));
  }

  auto shape = spec.shape;
  shape.back() = words;
  out.push_back(tensor(spec.name, TensorType::kU32, shape, packed));
  shape.back() = groups;
  out.push_back(tensor(module + ".scales", TensorType::kF16, shape, scales));
  out.push_back(tensor(module + ".biases", TensorType::kF16, shape, biases));
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

Status write_tiny_model(
    FileSystem& fs,
    const std::string& folder,
    const TinyModel& model) {
  std::vector<Tensor> tensors;
  for (const TinyTensor& spec : model.tensors) {
    if (spec.form == TinyForm::kWords) {
      tensors.push_back(drawn<uint32_t>(spec, TensorType::kU32));
    } else if (spec.form != TinyForm::kFloats) {
      tensors.push_back(drawn<uint8_t>(spec, TensorType::kU8));
    } else if (model.quantised && spec.exponent && is_matrix(spec)) {
      add_quantised(spec, tensors);
    } else {
      tensors.push_back(dense(spec, model.floats));
    }
  }
  // Wide elements first, as the writer asks.
  std::ranges::stable_sort(tensors, std::greater<>(), [](const Tensor& t) {
    return element_size(t.spec.type);
  });
  INGLE_RETURN_IF_ERROR(fs.create_directory(folder));
  INGLE_RETURN_IF_ERROR(write_file(
      fs, join_path(folder, "config.json"), as_bytes(model.config_json)));
  return write_weights(fs, join_path(folder, "model.safetensors"), tensors);
}

} // namespace ingle
