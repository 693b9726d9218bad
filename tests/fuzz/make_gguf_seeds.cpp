// Writes small GGUF files for the corpus: make_gguf_seeds FOLDER.

#include <cstdio>
#include <fstream>
#include <string>

#include "import/testing/gguf_builder.h"

int main(int argc, char** argv) {
  using namespace ingle;
  if (argc != 2) {
    std::fputs("usage: make_gguf_seeds FOLDER\n", stderr);
    return 2;
  }
  const struct {
    const char* name;
    GgmlType type;
    int64_t hidden;
  } seeds[] = {
      {"llama_f32", GgmlType::kF32, 8},
      {"llama_f16", GgmlType::kF16, 8},
      {"llama_bf16", GgmlType::kBF16, 8},
      {"llama_q4_0", GgmlType::kQ4_0, 32},
      {"llama_q4_1", GgmlType::kQ4_1, 32},
      {"llama_q8_0", GgmlType::kQ8_0, 32},
  };
  const auto write = [&](const char* name, const GgufBuilder& file) {
    std::ofstream(std::string(argv[1]) + "/" + name, std::ios::binary)
        << file.build();
  };
  for (const auto& seed : seeds) {
    write(seed.name, tiny_llama(seed.type, seed.hidden));
  }
  write("gemma3_f32", tiny_gemma3(GgmlType::kF32, 8, 1));
  return 0;
}
