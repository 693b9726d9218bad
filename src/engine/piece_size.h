// How much of a prompt a step reads: as much as it may, but beside rows that
// decode only so much that their next token is not late.
//
// Threads: one.
#pragma once

#include <chrono>

namespace ingle {

class PieceSize {
 public:
  using Seconds = std::chrono::duration<double>;

  // `most`: tokens. `max_gap`: between two tokens of a row that decodes.
  PieceSize(int most, Seconds max_gap) : most_(most), max_gap_(max_gap) {}

  // Tokens that the next step may read of a prompt; at least one tile's, so
  // that a prompt is read in any case. Its first piece, whose rows are written
  // to memory that nobody has touched yet, is a small one.
  int next(bool beside_decoding, bool is_first) const;

  // What a step took that read so many tokens of a prompt.
  void add_step(int prompt_tokens, bool beside_decoding, Seconds took);

 private:
  const int most_;
  const Seconds max_gap_;
  // What steps have taken lately: without a prompt, and for each token of one.
  Seconds decoding_{0};
  Seconds per_token_{0}; // 0: none was read yet
};

} // namespace ingle
