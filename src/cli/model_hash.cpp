#include "cli/model_hash.h"

#include <array>
#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ingle {

Result<std::string> model_hash(FileSystem& fs, const std::string& folder) {
  INGLE_ASSIGN_OR_RETURN(const auto names, fs.list(folder));
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const auto& name : names) {
    if (name != "config.json" && !name.ends_with(".safetensors")) {
      continue;
    }
    INGLE_ASSIGN_OR_RETURN(const auto file, fs.map(join_path(folder, name)));
    const ByteView bytes = file->bytes();
    const std::string head = name + "\n" + std::to_string(bytes.size()) + "\n";
    XXH3_128bits_update(&state, head.data(), head.size());
    XXH3_128bits_update(&state, bytes.data(), bytes.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  std::array<char, 33> text{};
  std::snprintf(
      text.data(),
      text.size(),
      "%016llx%016llx",
      static_cast<unsigned long long>(hash.high64),
      static_cast<unsigned long long>(hash.low64));
  return std::string(text.data());
}

} // namespace ingle
