// The loaded model as the API sees it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/token.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ingle {

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
};

// Threads: any; const after loading.
struct ServedModel {
  std::string name; // the folder's name
  std::chrono::milliseconds created{}; // since the epoch, when it was loaded
  int context_length = 0; // tokens, prompt and answer together
  int vocab_size = 0; // rows of the embedding
  std::vector<TokenId> eos; // config ∪ generation_config ∪ tokenizer_config
  // What XTC never removes: eos and the tokens of a line break.
  std::vector<TokenId> xtc_exempt;
  GenerationDefaults defaults;
  std::shared_ptr<const Tokenizer> tokenizer; // null: ids only
  std::shared_ptr<const ChatTemplate> chat_template; // null: no chat
  std::string bos_token; // as tokenizer_config.json spells them; or empty
  std::string eos_token;
  // "pad_token" and the like, as far as tokenizer_config.json has them, and
  // their texts: templates may ask for them.
  std::map<std::string, std::string> other_special_tokens;
};

} // namespace ingle
