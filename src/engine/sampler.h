// Logits -> the next token, on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "engine/generator.h"

namespace ingle {

// Chooses a token from the logits of one position.
//
// Temperature 0 is argmax (the lowest id of equals) and ignores the rest. Else
// top_p keeps the most likely tokens until what stands before one sums to p,
// top_k the k most likely, and the draw is over what both keep, by
// softmax(logits / temperature).
//
// The draw depends on `seed` and `step` alone: the same request gives the same
// tokens whatever runs beside it.
//
// Errors: kInternal (a logit is not a number, or none is finite: the model's
//         output is broken).
Result<TokenId> sample(
    std::span<const float> logits,
    const SamplingParams& params,
    uint64_t seed,
    uint64_t step);

// log softmax(logits)[chosen], and the `count` most likely tokens with theirs,
// most likely first (the lower id of equals).
GeneratedToken
with_logprobs(std::span<const float> logits, TokenId chosen, int count);

} // namespace ingle
