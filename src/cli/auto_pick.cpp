#include "cli/auto_pick.h"

#include "model/memory_plan.h"

namespace ingle {
namespace {

const PickCandidate* largest_within(
    std::span<const PickCandidate> candidates,
    uint64_t bytes) {
  const PickCandidate* found = nullptr;
  for (const PickCandidate& each : candidates) {
    if (each.total <= bytes &&
        (found == nullptr || each.weights > found->weights)) {
      found = &each;
    }
  }
  return found;
}

} // namespace

const PickCandidate* pick_model(
    std::span<const PickCandidate> candidates,
    uint64_t machine_bytes) {
  const uint64_t usable = usable_memory(machine_bytes);
  for (const PickCandidate& each : candidates) {
    if (each.is_default && each.total <= usable) {
      return &each;
    }
  }
  const PickCandidate* beside_others =
      largest_within(candidates, machine_bytes / 10 * 6);
  return beside_others != nullptr ? beside_others
                                  : largest_within(candidates, usable);
}

} // namespace ingle
