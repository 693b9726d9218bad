// How byte-level BPE cuts text into words, by the name in
// `tokenizer.ggml.pre`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ingle {

struct PreTokenizer {
  std::string_view name;
  // Regular expressions of Split steps, in order; every match and every gap
  // becomes a word.
  std::vector<std::string_view> splits;
  bool splits_digits = false; // a Digits step, each digit alone
  bool uses_gpt2_regex = false; // ByteLevel's own
  bool normalizes_nfc = false;
  bool ignores_merges = false; // a word that is a token is that token
  bool adds_bos = false; // where tokenizer.ggml.add_bos_token is absent
};

// Null for a name that is not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

// "default, gpt-2, ...", for messages.
std::string known_pre_tokenizers();

} // namespace ingle
