// Logits -> the next token, on the host.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/token.h"
#include "engine/generator.h"
#include "kernels/logits.h"

namespace ingle {

// Chooses a token from the logits of one position, to which the processors
// have been applied.
//
// Temperature 0 is argmax (the lowest id of equals) and ignores the rest. Else
// the draw is over what top_p, min_p, XTC and top_k leave (truncation.h), by
// softmax(logits / temperature); where XTC does not act, top_p is decided token
// by token instead of beforehand.
// XTC acts if a first draw is at most its probability; `xtc_exempt` are the ids
// that it never removes.
//
// The draws depend on `seed` and `step` alone: the same request gives the same
// tokens whatever runs beside it.
//
// Errors: kInternal (a logit is not a number, or none is finite: the model's
//         output is broken).
Result<TokenId> sample(
    const LogitPasses& passes,
    std::span<const float> logits,
    const SamplingParams& params,
    std::span<const TokenId> xtc_exempt,
    uint64_t seed,
    uint64_t step);

// log softmax(logits)[chosen], and the `count` most likely tokens with theirs,
// most likely first (the lower id of equals). A token that can't come has
// -9999: JSON knows no infinity.
// Requires: chosen < logits.size(), count >= 0. Errors: as sample().
Result<GeneratedToken> with_logprobs(
    const LogitPasses& passes,
    std::span<const float> logits,
    TokenId chosen,
    int count);

} // namespace ingle
