#include "model/testing/tiny_adapter.h"

#include <array>
#include <cstdio>

namespace ingle {

void add_factors(
    const std::string& module,
    int64_t in,
    int64_t rank,
    int64_t out,
    TinyAdapter& adapter) {
  adapter.tensors.push_back({module + ".lora_a", {in, rank}, 0});
  adapter.tensors.push_back({module + ".lora_b", {rank, out}, -2});
}

std::string lora_config_json(int rank, float scale) {
  std::array<char, 128> text{};
  std::snprintf(
      text.data(),
      text.size(),
      R"({"lora_parameters": {"rank": %d, "scale": %.9g, "dropout": 0.0}})",
      rank,
      static_cast<double>(scale));
  return text.data();
}

TinyAdapter tiny_llama_adapter(int rank, float scale) {
  struct Shape {
    const char* module;
    int64_t in;
    int64_t out;
  };
  constexpr Shape kShapes[] = {
      {"self_attn.q_proj", 64, 64},
      {"self_attn.k_proj", 64, 32},
      {"self_attn.v_proj", 64, 32},
      {"self_attn.o_proj", 64, 64},
      {"mlp.gate_proj", 64, 128},
      {"mlp.up_proj", 64, 128},
      {"mlp.down_proj", 128, 64}};
  TinyAdapter adapter{lora_config_json(rank, scale), {}};
  for (int layer = 0; layer < 3; ++layer) {
    const std::string path = "model.layers." + std::to_string(layer) + ".";
    for (const Shape& shape : kShapes) {
      add_factors(path + shape.module, shape.in, rank, shape.out, adapter);
    }
  }
  return adapter;
}

Status write_tiny_adapter(
    FileSystem& fs,
    const std::string& folder,
    const TinyAdapter& adapter) {
  INGLE_RETURN_IF_ERROR(fs.remove(folder));
  INGLE_RETURN_IF_ERROR(
      write_tiny_model(fs, folder, {adapter.config_json, adapter.tensors}));
  INGLE_RETURN_IF_ERROR(fs.rename(
      join_path(folder, "model.safetensors"),
      join_path(folder, adapter.weights)));
  return fs.rename(
      join_path(folder, "config.json"), join_path(folder, adapter.config));
}

} // namespace ingle
