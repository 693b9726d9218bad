// What an adapter adds to a linear: scale * (x A) B, of two thin matrices in
// f32. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (2021).
//
// Inputs are what the linear's are before they are packed: no bits of them are
// lost. A token's sums have an order that nothing beside it changes, and a
// token without an adapter is not touched: it has the bits that it had.
#pragma once

#include <span>

namespace ingle {

// One adapter's part of one linear. Owns nothing.
struct LowRank {
  const float* a = nullptr; // [rank][columns]: A, transposed
  const float* b = nullptr; // [rank][rows]
  int rank = 0; // at least one
  float scale = 0;
};

// Tokens [first, first + tokens) of a step, to which these are added, in their
// order.
struct LowRankRun {
  int first = 0;
  int tokens = 0;
  std::span<const LowRank> parts{};

  // How many floats xA has, of all parts together.
  int ranks() const {
    int sum = 0;
    for (const LowRank& part : parts) {
      sum += part.rank;
    }
    return sum;
  }
};

} // namespace ingle
