// Uses each layer that the package offers through its installed headers.
#include <cstdio>

#include "base/file_system.h"
#include "engine/generator.h"
#include "text/tokenizer.h"

int main() {
  auto fs = ingle::make_memory_file_system();
  const auto missing = ingle::Tokenizer::load(*fs, "tokenizer.json");
  if (missing.status().code() != ingle::StatusCode::kNotFound) {
    std::puts("a missing tokenizer.json was not reported");
    return 1;
  }
  std::puts(missing.status().message().c_str());
  return 0;
}
