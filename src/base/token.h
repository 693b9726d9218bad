// A token's number in the vocabulary of one tokenizer.
#pragma once

#include <cstdint>

namespace ingle {

using TokenId = int32_t;

} // namespace ingle
