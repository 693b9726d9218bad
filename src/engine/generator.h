// What a generation is asked for and what comes back. No MLX: http/ and cli/
// see only this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "engine/engine_stats.h"
#include "engine/served_model.h"
#include "text/output_router.h"

namespace ingle {

class AdapterSet; // model/lora.h
class Grammar;

// Below it, but for 0, a repetition penalty makes infinite logits.
inline constexpr float kLeastRepetitionPenalty = 0.01f;

// How the logits of a step become a token. The fields stand in the order in
// which they are applied; each default changes nothing.
struct SamplingParams {
  // Processors: at any temperature, before log-probabilities are taken.
  //
  // A context is how many of the last tokens, prompt included, a penalty looks
  // at; 0: all of them.
  std::vector<std::pair<TokenId, float>> logit_bias; // added; ids once each
  // Divides logits >= 0 and multiplies others, once per token; 0 and 1: off.
  float repetition_penalty = 1;
  int repetition_context = 20;
  float presence_penalty = 0; // subtracted once per token of the context
  int presence_context = 20;
  float frequency_penalty = 0; // subtracted per occurrence
  int frequency_context = 20;

  float temperature = 0; // 0: greedy, the rest is ignored

  // Truncation, on the probabilities at temperature 1.
  float top_p = 1; // in [0, 1]; 0 and 1 keep everything
  float min_p = 0; // in [0, 1]; of the most likely token's probability
  int min_tokens_to_keep = 1; // what min_p leaves in any case; >= 1
  float xtc_probability = 0; // in [0, 1]; how often XTC acts
  // In [0, 0.5]; from which probability on. As llama.cpp has it: at 0, XTC
  // would leave the least likely token alone.
  float xtc_threshold = 0.1f;
  int top_k = 0; // 0: keep everything

  std::optional<uint64_t> seed; // nothing: another one for each request
};

struct GenerationRequest {
  std::vector<TokenId> prompt; // not empty
  // prompt + max_tokens within the context. 0: the prompt is read, and
  // nothing is generated.
  int max_tokens = 0;
  // Nobody has asked for so many: where memory does not hold them beside other
  // generations, the answer ends earlier, as if this was its length.
  bool is_open_ended = false;
  int min_tokens = 0; // before these nothing ends the answer; <= max_tokens
  SamplingParams sampling;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  // Thoughts and tool calls that are taken out of the text, by the model's
  // markup; null: all text is content.
  std::shared_ptr<const OutputRouting> routing;
  // What the answer has to follow; null: nothing. Tokens that it does not allow
  // are taken out behind the processors, at any temperature, and behind the
  // log-probabilities, which are the model's own. The answer ends ("stop")
  // where the grammar does, whatever min_tokens says; where ignore_eos or
  // min_tokens forbid an end of sequence, it goes on as long as the grammar
  // can.
  std::shared_ptr<const Grammar> grammar;
  // Per token: the log-probability of the chosen one and of the N most likely
  // (0: the chosen one alone). Nothing: not computed.
  std::optional<int> top_logprobs;
  // With top_logprobs: for the tokens of the prompt too. Nothing of it is then
  // served from a cache.
  bool prompt_logprobs = false;
  // False: takes nothing over that others have read, and leaves nothing behind.
  bool use_cache = true;
  // Positions in the prompt at which other prompts are likely to go on, or to
  // diverge. Models that forget go back to these, and to the end. Ascending.
  std::vector<int> resume_hints;
  // What is added to the model while this runs; null: nothing.
  std::shared_ptr<const AdapterSet> adapters;
};

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0; // natural log, full vocabulary, before truncation
};

// A token of an answer, or of a prompt. An end-of-sequence token that ends the
// answer is not given out.
struct GeneratedToken {
  TokenId id = 0;
  float logprob = 0; // only with top_logprobs
  std::vector<TokenLogprob> top; // most likely first
};

// What one step read of the prompt.
struct PrefillStep {
  int total = 0; // tokens of the prompt
  int cached = 0; // of these, served from a cache
  int processed = 0; // of these, done by now, `cached` included
  double elapsed_ms = 0; // since the generation began to run
  // With prompt_logprobs: the tokens that this step read, all but the first of
  // the prompt, which nothing predicts.
  std::vector<GeneratedToken> tokens;
};

// What one step added. All texts may be empty (an incomplete character, or the
// possible beginning of a stop string or of markup) and may belong to earlier
// tokens.
struct GenerationDelta {
  std::vector<GeneratedToken> tokens;
  std::string text; // content
  std::string reasoning = {};
  std::vector<ToolCallPart> tool_calls = {};

  bool has_text() const {
    return !text.empty() || !reasoning.empty() || !tool_calls.empty();
  }
};

enum class FinishReason {
  kStop, // end of sequence, or a stop string
  kLength, // max_tokens
  kToolCalls, // it has a tool call; stands over both above
  kCancelled, // the client went away, or the server is stopping
};

// "stop", "length", "tool_calls", "cancelled".
constexpr std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "stop";
}

// Where the cached tokens of a prompt come from.
enum class CachedFrom {
  kNothing,
  kEntry, // the prompt cache: an entry that the prompt goes on from
  kEntryPrefix, // the prompt cache: a copy of an entry's first tokens
  kRow, // a copy of another generation's that runs
};

// "nothing", "entry", "prefix", "row".
constexpr std::string_view to_string(CachedFrom from) {
  switch (from) {
    case CachedFrom::kNothing:
      return "nothing";
    case CachedFrom::kEntry:
      return "entry";
    case CachedFrom::kEntryPrefix:
      return "prefix";
    case CachedFrom::kRow:
      return "row";
  }
  return "nothing";
}

struct GenerationStats {
  int prompt_tokens = 0;
  int cached_tokens = 0; // of the prompt, served from a cache
  CachedFrom cached_from = CachedFrom::kNothing;
  // Of the prompt, tokens that it shares with the sequence known that shares
  // most: there it diverges.
  int shared_tokens = 0;
  int generated_tokens = 0; // sampled, a final end-of-sequence included
  int reasoning_tokens = 0; // of these, of thoughts
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
//          and return. Calls come in order; on_end() comes exactly once and
//          last, also after cancel() and on shutdown.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // Once per piece of the prompt, before the first delta.
  virtual void on_prefill(PrefillStep /*step*/) {}
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
  // kInvalidRequest (what check_request() gives; context: reason
  // "context_length_exceeded"). where() is the request's field.
  // After an error the sink is never called.
  virtual Result<GenerationId> submit(
      GenerationRequest request,
      std::shared_ptr<GenerationSink> sink) = 0;

  // Ends a generation within one step, or one prefill chunk. Unknown and
  // finished ids are ignored.
  virtual void cancel(GenerationId id) = 0;

  // What it does and has done so far, also while the model loads.
  virtual EngineStats stats() const = 0;
};

} // namespace ingle
