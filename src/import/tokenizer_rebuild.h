// The tokenizer in a GGUF file -> tokenizer.json and what goes with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "import/gguf_reader.h"

namespace ingle {

struct RebuiltTokenizer {
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  std::string chat_template; // empty: the file has none
  std::optional<int64_t> bos;
  std::vector<int64_t> eos; // all ids that end a generation
};

// Byte-level BPE (tokenizer.ggml.model "gpt2") and SentencePiece-style BPE
// with byte fallback ("llama").
// Errors: kUnsupported (another kind of tokenizer or pre-tokenizer, by name;
// a SentencePiece token that is longer than kMaxPieceBytes),
// kCorruption (missing keys, lists of different lengths, ids out of range,
// text that is not UTF-8, a token that stands twice).
Result<RebuiltTokenizer> rebuild_tokenizer(const GgufFile& file);

} // namespace ingle
