// A tokenizer.json, and a text for it.
//
// The JSON ends at the first zero byte; what follows, if anything, is encoded
// besides a text that is always the same.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/utf8.h"
#include "fuzz/checks.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace ingle {
namespace {

constexpr std::string_view kText =
    "Hello, w\u00f6rld!  It's 12345 \u4f60\u597d\t\U0001f642\r\n\n"
    "<s>ab <|im_end|>\u00a0e\u0301 \ufb01 \u0661";

void check_use(const Status& status) {
  check_status(status, {StatusCode::kInvalidRequest, StatusCode::kCorruption});
}

void decode(
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const std::vector<TokenId>& ids) {
  for (const bool skip_special_tokens : {false, true}) {
    const auto text = tokenizer->decode(ids, skip_special_tokens);
    check_use(text.status());
    check(!text.is_ok() || is_utf8(*text), "decoded text is UTF-8");
  }
  StreamDecoder decoder(tokenizer);
  for (const TokenId id : ids) {
    check_use(tokenizer->token_bytes(id).status());
    const auto piece = decoder.push(id);
    check_use(piece.status());
    check(!piece.is_ok() || is_utf8(*piece), "streamed text is UTF-8");
  }
}

void encode(
    const std::shared_ptr<const Tokenizer>& tokenizer,
    std::string_view text) {
  for (const bool add_special_tokens : {false, true}) {
    const auto ids = tokenizer->encode(text, add_special_tokens);
    check_use(ids.status());
    if (!ids.is_ok()) {
      continue;
    }
    for (const TokenId id : *ids) {
      check(
          id >= 0 && id < tokenizer->vocab_size(),
          "ids are inside the vocabulary");
    }
    if (add_special_tokens) { // once is enough, and it is what takes long
      decode(tokenizer, *ids);
    }
  }
}

} // namespace
} // namespace ingle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ingle::set_log_level(ingle::LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingle;
  const std::string_view input = input_text(data, size);
  const size_t end = input.find('\0');
  const auto tokenizer =
      Tokenizer::from_json(input.substr(0, end), "tokenizer.json");
  check_status(tokenizer.status(), {StatusCode::kCorruption});
  if (!tokenizer.is_ok()) {
    return 0;
  }
  check((*tokenizer)->vocab_size() > 0, "a tokenizer has tokens");
  encode(*tokenizer, kText);
  if (end != std::string_view::npos) {
    encode(*tokenizer, input.substr(end + 1));
  }
  const std::vector<TokenId> outside = {(*tokenizer)->vocab_size()};
  check(
      (*tokenizer)->decode(outside, false).status().code() ==
          StatusCode::kInvalidRequest,
      "an id outside the vocabulary is refused");
  return 0;
}
