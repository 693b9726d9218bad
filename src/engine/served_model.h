// The loaded model as the API sees it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/chat_template.h"
#include "text/grammar.h"
#include "text/output_markup.h"
#include "text/tokenizer.h"

namespace ingle {

class Adapters; // engine/adapters.h

// What holds where a request says nothing: the server's flags, else
// generation_config.json. Nothing: the API's own constant.
struct GenerationDefaults {
  std::optional<int> max_tokens; // flags only
  std::optional<float> temperature;
  bool has_temperature_flag = false; // true iff a flag gave the temperature
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<int> top_k;
  std::optional<float> repetition_penalty;
  std::optional<bool> thinking; // flags only; nothing: as the template has it
};

// What chat templates may ask for, as Hugging Face's tokenizers call it.
inline constexpr std::array<std::string_view, 7> kSpecialTokens = {
    "bos_token",
    "cls_token",
    "eos_token",
    "mask_token",
    "pad_token",
    "sep_token",
    "unk_token"};

// Threads: any; const after loading.
struct ServedModel {
  std::string name; // the folder's, unless the engine was told another
  std::chrono::milliseconds created{}; // since the epoch, when it was loaded
  int context_length = 0; // tokens, prompt and answer together
  // Tokens of one sequence that fit in the memory that may be used; nothing: as
  // many as the model's context has.
  std::optional<int> memory_context;
  int vocab_size = 0; // rows of the embedding
  size_t weight_bytes = 0; // of memory
  std::string compute; // by what: "avx512 kernels, 2 threads"
  // Its layers don't keep every row of a sequence: GenerationRequest's
  // resume_hints are worth finding.
  bool forgets = false;
  std::vector<TokenId> eos; // config ∪ generation_config ∪ tokenizer_config
  // What XTC never removes: eos and the tokens of a line break.
  std::vector<TokenId> xtc_exempt;
  GenerationDefaults defaults;
  std::shared_ptr<const Tokenizer> tokenizer; // null: ids only
  std::shared_ptr<const ChatTemplate> chat_template; // null: no chat
  OutputMarkup markup; // of what it answers to the template
  std::shared_ptr<const GrammarCompiler> grammars; // null: no tokenizer
  std::shared_ptr<Adapters> adapters; // null: it takes none
  // Those of kSpecialTokens that tokenizer_config.json has, and their texts,
  // none of which is empty.
  std::map<std::string, std::string, std::less<>> special_tokens;

  // What a request may have.
  int usable_context() const {
    return std::min(context_length, memory_context.value_or(context_length));
  }

  // Nothing: the model has none of this name, or no tokenizer.
  std::optional<TokenId> special_token_id(std::string_view key) const {
    const auto token = special_tokens.find(key);
    return tokenizer == nullptr || token == special_tokens.end()
        ? std::nullopt
        : tokenizer->token_to_id(token->second);
  }
};

} // namespace ingle
