// What a generation is asked for and what comes back. No MLX: http/ and cli/
// see only this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "engine/served_model.h"

namespace ingle {

struct SamplingParams {
  float temperature = 0; // 0: greedy, the rest is ignored
  float top_p = 1; // in [0, 1]; 0 and 1 keep everything
  int top_k = 0; // 0: keep everything
  std::optional<uint64_t> seed;
};

struct GenerationRequest {
  std::vector<TokenId> prompt; // not empty
  int max_tokens = 0; // >= 1; prompt + max_tokens within the context
  SamplingParams sampling;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  // Per token: the log-probability of the chosen one and of the N most likely
  // (0: the chosen one alone). Nothing: not computed.
  std::optional<int> top_logprobs;
};

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0; // natural log, full vocabulary, before truncation
};

// A generated token. An end-of-sequence token that ends the answer is not
// given out.
struct GeneratedToken {
  TokenId id = 0;
  float logprob = 0; // only with top_logprobs
  std::vector<TokenLogprob> top; // most likely first
};

// What one step added. `text` may be empty (an incomplete character, or the
// possible beginning of a stop string) and may belong to earlier tokens.
struct GenerationDelta {
  std::vector<GeneratedToken> tokens;
  std::string text;
};

enum class FinishReason {
  kStop, // end of sequence, or a stop string
  kLength, // max_tokens
  kCancelled, // the client went away, or the server is stopping
};

// "stop", "length", "cancelled".
constexpr std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "stop";
}

struct GenerationStats {
  int prompt_tokens = 0;
  int cached_tokens = 0; // of the prompt, served from a cache
  int generated_tokens = 0; // sampled, a final end-of-sequence included
  double prefill_ms = 0; // until the first token was there
  double decode_ms = 0;
};

struct GenerationEnd {
  Status status; // not ok: the generation failed, nothing else counts
  FinishReason reason = FinishReason::kStop;
  GenerationStats stats;
};

// Where a generation's output goes.
//
// Threads: called on the engine thread, which must not be held up: hand over
//          and return. Deltas come in order; on_end() comes exactly once and
//          last, also after cancel() and on shutdown.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  virtual void on_delta(GenerationDelta delta) = 0;
  virtual void on_end(GenerationEnd end) = 0;
};

using GenerationId = uint64_t;

// Threads: any.
class Generator {
 public:
  virtual ~Generator() = default;

  // The model, once it can answer; nothing while it loads or after that
  // failed.
  virtual std::shared_ptr<const ServedModel> model() const = 0;

  // Queues a generation. Errors: kOverloaded (reason "queue_full",
  // "model_loading" or "server_stopping"), what kept the model from loading,
  // kInvalidRequest (context: reason "context_length_exceeded"; an empty
  // prompt, a token or a sampling parameter out of range).
  // After an error the sink is never called.
  virtual Result<GenerationId> submit(
      GenerationRequest request,
      std::shared_ptr<GenerationSink> sink) = 0;

  // Ends a generation within one step, or one prefill chunk. Unknown and
  // finished ids are ignored.
  virtual void cancel(GenerationId id) = 0;
};

} // namespace ingle
