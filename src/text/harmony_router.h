// gpt-oss's answers: messages with a header each.
//
// Private to text/.
#pragma once

#include <memory>

#include "text/output_router.h"

namespace ingle {

// The prompt ends in "<|start|>assistant", so the answer begins in a header:
//   [to=RECIPIENT] <|channel|>NAME [to=RECIPIENT] [<|constrain|>]TYPE
//   <|message|>
// up to <|end|>, <|call|> or the next <|start|>. What has no header is content.
std::unique_ptr<OutputRouter> make_harmony_router(
    const OutputMarkup& markup,
    OutputRouting routing);

} // namespace ingle
