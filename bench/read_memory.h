// Reads memory as fast as a thread can.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

namespace ingle {

// The sum of the words, so that they are really read: a multiple of 32.
inline uint64_t read_memory(std::span<const uint64_t> words) {
  std::array<uint64_t, 32> sums{};
  for (size_t i = 0; i < words.size(); i += sums.size()) {
    for (size_t lane = 0; lane < sums.size(); ++lane) {
      sums[lane] += words[i + lane];
    }
  }
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0});
}

} // namespace ingle
