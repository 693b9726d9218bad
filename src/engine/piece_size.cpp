#include "engine/piece_size.h"

#include <algorithm>

namespace ingle {
namespace {

constexpr int kTile = 16; // tokens; pieces beside decoding are made of them
// Steps take longer than the last ones did: a deeper prompt, a busy machine.
constexpr double kUsedOfGap = 0.65;
constexpr int kSmall = 4 * kTile; // where nothing says what a step will take
constexpr double kForgetting = 0.1; // of what was measured, by each step

// Follows what takes longer at once, and what takes less slowly.
void follow(PieceSize::Seconds& average, PieceSize::Seconds measured) {
  average = measured > average ? measured
                               : average + kForgetting * (measured - average);
}

} // namespace

int PieceSize::next(bool beside_decoding, bool is_first) const {
  if (!beside_decoding) {
    return most_;
  }
  if (is_first || per_token_.count() == 0) {
    return std::min(kSmall, most_);
  }
  const double left = kUsedOfGap * max_gap_.count() - decoding_.count();
  const double tokens = std::max(0.0, left / per_token_.count());
  const int tiles = static_cast<int>(std::min<double>(tokens, most_)) / kTile;
  return std::min(most_, std::max(1, tiles) * kTile);
}

void PieceSize::add_step(
    int prompt_tokens,
    bool beside_decoding,
    Seconds took) {
  if (prompt_tokens == 0) {
    follow(decoding_, took);
    return;
  }
  const Seconds prompt = beside_decoding ? took - decoding_ : took;
  if (prompt_tokens >= kTile && prompt.count() > 0) {
    follow(per_token_, prompt / prompt_tokens);
  }
}

} // namespace ingle
