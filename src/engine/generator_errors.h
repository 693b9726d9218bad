// What a Generator refuses, in words that its users need too: each is known to
// http/ before a request gets as far as the engine.
#pragma once

#include "base/status.h"

namespace ingle {

// The reason of a refusal: prompt and answer do not fit in memory.
inline constexpr char kContextOverBudget[] = "context_over_budget";

inline Status model_loading() {
  return Status::overloaded("the model is still loading, try again soon")
      .with_reason("model_loading");
}

inline Status server_stopping() {
  return Status::overloaded("the server is stopping")
      .with_reason("server_stopping");
}

} // namespace ingle
