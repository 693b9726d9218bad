// Which model is run where nobody names one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ingle {

struct PickCandidate {
  std::string name;
  bool is_default = false; // kDefaultModel
  uint64_t weights = 0; // bytes
  uint64_t total = 0; // bytes, with a context of kUsualContext or its own
};

// The default model if it fits; else the one with the most weights that leaves
// others some room, at most 0.6 of the machine's memory; else that which fits
// at all (usable_memory()). Of equals the first. Null: none fits.
const PickCandidate* pick_model(
    std::span<const PickCandidate> candidates,
    uint64_t machine_bytes);

} // namespace ingle
