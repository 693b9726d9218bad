// A SentencePiece-style tokenizer that fits into a test. For tests only.
#pragma once

#include <string>

#include "base/token.h"

namespace ingle {

// The two ways in which tokenizer.json files of this kind put a space before
// the text and take it away again.
enum class SpaceStripping {
  kReplaceAndStrip, // decoder: Replace, ByteFallback, Fuse, Strip
  kMetaspace, // decoder: ByteFallback, Metaspace
};

// The content of a tokenizer.json: BPE with byte fallback. Tokens: "<unk>",
// "<s>", "</s>", the 256 bytes from kFirstByteToken on, "\u2581" (a space),
// "a", "b", "\u2581a", "\u2581ab".
std::string sentence_piece_tokenizer_json(SpaceStripping stripping);

inline constexpr TokenId kFirstByteToken = 3;

} // namespace ingle
