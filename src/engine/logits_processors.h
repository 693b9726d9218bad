// What changes logits before anything is read from them.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.h"
#include "engine/generator.h"

namespace ingle {

// How often each token stands among the last `size` of a sequence.
class TokenWindow {
 public:
  // 0: all of the sequence.
  explicit TokenWindow(int size) : size_(static_cast<size_t>(size)) {}

  // Cost: constant, whatever the size.
  void push(TokenId token);
  // The tokens that are in it, with their counts.
  const std::unordered_map<TokenId, int>& counts() const {
    return counts_;
  }

 private:
  const size_t size_;
  std::deque<TokenId> tokens_; // not kept where nothing ever leaves
  std::unordered_map<TokenId, int> counts_;
};

// The processors of one generation: logit_bias, then repetition, presence and
// frequency penalty, then the end-of-sequence tokens that min_tokens forbids.
// The penalties see the whole prompt, what came from a cache included. All in
// f32.
class LogitsProcessors {
 public:
  // Requires: a checked request; all ids below the vocabulary's size.
  LogitsProcessors(
      const GenerationRequest& request,
      std::span<const TokenId> eos);

  // False: apply() would change nothing.
  bool is_active() const;
  // Cost: one operation per bias and per different token of a window.
  void apply(std::span<float> logits) const;
  // A token was generated.
  void push(TokenId token);

 private:
  struct Penalty {
    float strength;
    TokenWindow window;
  };
  static std::optional<Penalty> make_penalty(
      bool is_on,
      float strength,
      int context,
      std::span<const TokenId> prompt);

  const std::vector<std::pair<TokenId, float>> bias_;
  std::optional<Penalty> repetition_;
  std::optional<Penalty> presence_;
  std::optional<Penalty> frequency_;
  const std::vector<TokenId> forbidden_; // while there are too few tokens
  int forbidden_left_ = 0; // tokens
};

} // namespace ingle
