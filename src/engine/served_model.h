// The loaded model as the API sees it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/token.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ingle {

// What generation_config.json says; an API request overrides it per knob.
struct GenerationDefaults {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int> top_k;
};

// Threads: any; const after loading.
struct ServedModel {
  std::string name; // the folder's name
  std::chrono::milliseconds created{}; // since the epoch, when it was loaded
  int context_length = 0; // tokens, prompt and answer together
  int vocab_size = 0; // rows of the embedding
  std::vector<TokenId> eos; // config ∪ generation_config ∪ tokenizer_config
  GenerationDefaults defaults;
  std::shared_ptr<const Tokenizer> tokenizer; // null: ids only
  std::shared_ptr<const ChatTemplate> chat_template; // null: no chat
  std::string bos_token; // as tokenizer_config.json spells them; or empty
  std::string eos_token;
};

} // namespace ingle
