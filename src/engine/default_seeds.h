// Seeds for requests that bring none.
#pragma once

#include <chrono>
#include <cstdint>

namespace ingle {

// Threads: one.
class DefaultSeeds {
 public:
  // `now`: since the epoch. The counter keeps apart two requests of the same
  // millisecond. Returns: below 2^32, so that any client can send it back.
  uint64_t next(std::chrono::milliseconds now) {
    counter_ += 0x9E3779B9u;
    return static_cast<uint32_t>(now.count()) ^ counter_;
  }

 private:
  uint32_t counter_ = 0;
};

} // namespace ingle
