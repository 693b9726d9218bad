// BPE merges from SentencePiece pieces, which GGUF keeps without merges.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ingle {

struct Piece {
  std::string_view text; // UTF-8
  float score = 0;
  bool can_merge = false; // false: neither a result nor a part of a merge
};

// Longer pieces cost the square of their length; a vocabulary's have tens of
// bytes.
constexpr size_t kMaxPieceBytes = 1024;

using Merge = std::pair<std::string_view, std::string_view>;

// Every way to cut a piece into two others, the piece with the higher score
// first; among equal scores longer left parts, then longer right parts (in
// characters), then the order of the pieces, then of the left parts. This is
// the order in which Hugging Face's converter writes them.
// Requires: texts are unique, UTF-8 and within kMaxPieceBytes.
std::vector<Merge> merges_from_pieces(std::span<const Piece> pieces);

} // namespace ingle
