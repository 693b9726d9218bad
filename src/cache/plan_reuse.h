// What a prompt can take over of KV that is there, or is being made. Pure: no
// cache, no clock, no MLX.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token.h"

namespace ingle {

// The KV of some tokens.
struct ReuseSource {
  std::span<const TokenId> tokens; // that it has read, or will have
  int64_t held = 0; // of these, those that it has read
  // Positions from which decoding can go on: each from here to `held`,
  int64_t first_resume_point = 0;
  std::vector<int64_t> checkpoints{}; // and these; ascending, each <= held
  // Nobody uses it: it can be handed over instead of copied.
  bool is_idle = false;
};

struct ReusePlan {
  size_t source = 0; // by number; where length > 0
  int64_t length = 0; // tokens of the prompt to take over; 0: none
  // The prompt goes on where the source ends: it is handed over.
  bool moves = false;
  // The source has not read so many yet: wait until it has.
  bool waits = false;
  // Tokens that the prompt shares with the source that shares most: there it
  // diverges.
  int64_t shared = 0;
};

// Tokens that have to be saved by it before a prompt waits for another's.
inline constexpr int64_t kWorthWaiting = 16;

// The longest prefix of the prompt, without its last token, from whose end
// decoding can go on. Of equally long ones it is one that moves, else the
// first. To wait for one that is being read is better where it saves
// kWorthWaiting tokens more.
ReusePlan plan_reuse(
    std::span<const TokenId> prompt,
    std::span<const ReuseSource> sources);

} // namespace ingle
