// A tokenizer.json, and a text for it.
//
// The JSON ends at the first zero byte; what follows, if anything, is encoded
// besides a text that is always the same. Tokenizers that are sound encode it
// too: with them no failure of the library is excused.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/utf8.h"
#include "fuzz/checks.h"
#include "text/stream_decoder.h"
#include "text/testing/sentence_piece_tokenizer.h"
#include "text/testing/tiny_tokenizer.h"
#include "text/tokenizer.h"

namespace ingle {
namespace {

constexpr std::string_view kText =
    "Hello, w\u00f6rld!  It's 12345 \u4f60\u597d\t\U0001f642\r\n\n"
    "<s>ab <|im_end|>\u00a0e\u0301 \ufb01 \u0661";

using SharedTokenizer = std::shared_ptr<const Tokenizer>;

// Whether a tokenizer may turn out not to be usable.
enum class Soundness { kSound, kForeign };

void check_use(const Status& status, Soundness soundness) {
  if (soundness == Soundness::kSound) {
    check_status(status, {StatusCode::kInvalidRequest});
  } else {
    check_status(
        status, {StatusCode::kInvalidRequest, StatusCode::kCorruption});
  }
}

void decode(
    const SharedTokenizer& tokenizer,
    const std::vector<TokenId>& ids,
    Soundness soundness) {
  for (const bool skip_special_tokens : {false, true}) {
    const auto text = tokenizer->decode(ids, skip_special_tokens);
    check_use(text.status(), soundness);
    check(!text.is_ok() || is_utf8(*text), "decoded text is UTF-8");
  }
  StreamDecoder decoder(tokenizer);
  for (const TokenId id : ids) {
    check_use(tokenizer->token_bytes(id).status(), soundness);
    const auto piece = decoder.push(id);
    check_use(piece.status(), soundness);
    check(!piece.is_ok() || is_utf8(*piece), "streamed text is UTF-8");
  }
}

void encode(
    const SharedTokenizer& tokenizer,
    std::string_view text,
    Soundness soundness) {
  for (const bool add_special_tokens : {false, true}) {
    const auto ids = tokenizer->encode(text, add_special_tokens);
    check_use(ids.status(), soundness);
    if (!ids.is_ok()) {
      continue;
    }
    for (const TokenId id : *ids) {
      check(
          id >= 0 && id < tokenizer->vocab_size(),
          "ids are inside the vocabulary");
    }
    if (add_special_tokens) { // once is enough, and it is what takes long
      decode(tokenizer, *ids, soundness);
    }
  }
}

// Bytes, each a token or nearly; more would take most of the time.
constexpr size_t kLongestSoundText = 48;

SharedTokenizer load_sound(const std::string& json) {
  auto tokenizer = Tokenizer::from_json(json, "sound.json");
  check(tokenizer.is_ok(), "a sound file loads");
  return *std::move(tokenizer);
}

void encode_with_sound_tokenizers(std::string_view text) {
  static const SharedTokenizer byte_level = load_sound(
      tiny_tokenizer_json({{"a", "b"}, {"\u0120", "a"}, {"\u00c3", "\u00b6"}}));
  static const SharedTokenizer sentence_piece = load_sound(
      sentence_piece_tokenizer_json(SpaceStripping::kReplaceAndStrip));
  encode(byte_level, text, Soundness::kSound);
  encode(sentence_piece, text, Soundness::kSound);
  const auto ids = byte_level->encode(text, false);
  check(ids.is_ok() == is_utf8(text), "all UTF-8 can be encoded");
  check(
      !ids.is_ok() || *byte_level->decode(*ids, false) == text,
      "bytes come back as they were");
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
  const bool has_text = end != std::string_view::npos;
  const std::string_view text = input.substr(has_text ? end + 1 : input.size());
  if (has_text) {
    encode_with_sound_tokenizers(text.substr(0, kLongestSoundText));
  }
  const auto tokenizer =
      Tokenizer::from_json(input.substr(0, end), "tokenizer.json");
  check_status(tokenizer.status(), {StatusCode::kCorruption});
  if (!tokenizer.is_ok()) {
    return 0;
  }
  check((*tokenizer)->vocab_size() > 0, "a tokenizer has tokens");
  encode(*tokenizer, kText, Soundness::kForeign);
  if (has_text) {
    encode(*tokenizer, text, Soundness::kForeign);
  }
  const std::vector<TokenId> outside = {(*tokenizer)->vocab_size()};
  check(
      (*tokenizer)->decode(outside, false).status().code() ==
          StatusCode::kInvalidRequest,
      "an id outside the vocabulary is refused");
  return 0;
}
