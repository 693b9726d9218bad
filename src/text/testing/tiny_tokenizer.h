// A tokenizer and a chat template that fit into a test. For tests only.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.h"

namespace ingle {

// The content of a tokenizer.json: byte-level BPE where byte b is token b, the
// special tokens below follow, and each of `merges` makes one token more, from
// 259 on. Without merges a text has as many tokens as bytes.
// `specials` are more special tokens, in front of what merges make.
//
// A merge joins two tokens as the file spells them, a space being "\u0120".
std::string tiny_tokenizer_json(
    const std::vector<std::pair<std::string, std::string>>& merges = {},
    const std::vector<std::string>& specials = {});

inline constexpr TokenId kTinyEndOfText = 256; // "<|endoftext|>"
inline constexpr TokenId kTinyImStart = 257; // "<|im_start|>"
inline constexpr TokenId kTinyImEnd = 258; // "<|im_end|>"
inline constexpr TokenId kTinyVocabSize = 259; // without merges

// Messages as ChatML: "<|im_start|>role\ncontent<|im_end|>\n" each.
inline constexpr std::string_view kTinyChatTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

} // namespace ingle
