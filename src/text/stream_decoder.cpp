#include "text/stream_decoder.h"

#include <algorithm>
#include <span>
#include <utility>

namespace ingle {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

// A character has at most four bytes, so at most three are incomplete, and at
// most as many tokens hold them.
constexpr size_t kIncompleteBytes = 3;

// Text settles every few tokens. Only output that makes no sense (bytes that
// are no text, tokens without text) fills a window; it is cut down then.
constexpr size_t kMaxWindow = 24; // tokens
constexpr size_t kKeptWindow = 8;

// Bytes at the end that later tokens may still change: decoders show an
// incomplete character as one U+FFFD, or as one for each of its bytes.
size_t unsettled_size(std::string_view text) {
  size_t size = 0;
  for (size_t i = 0; i < kIncompleteBytes && text.ends_with(kReplacement);
       ++i) {
    text.remove_suffix(kReplacement.size());
    size += kReplacement.size();
  }
  return size;
}

} // namespace

StreamDecoder::StreamDecoder(
    std::shared_ptr<const Tokenizer> tokenizer,
    std::vector<TokenId> shown)
    : tokenizer_(std::move(tokenizer)), shown_specials_(std::move(shown)) {}

// Special tokens that are not shown are out of the window where some are.
Result<std::string> StreamDecoder::decode(std::span<const TokenId> ids) const {
  return tokenizer_->decode(ids, shown_specials_.empty());
}

Result<std::string> StreamDecoder::push(TokenId id) {
  if (!shown_specials_.empty() &&
      std::ranges::find(shown_specials_, id) == shown_specials_.end()) {
    INGLE_ASSIGN_OR_RETURN(bool skipped, is_skipped(id));
    if (skipped) {
      return std::string();
    }
  }
  window_.push_back(id);
  auto decoded = decode(window_);
  if (!decoded.is_ok()) {
    window_.pop_back();
    return std::move(decoded).status();
  }
  std::string text = std::move(decoded).value();
  if (text == decoded_) {
    INGLE_ASSIGN_OR_RETURN(bool skipped, is_skipped(id));
    if (skipped) {
      window_.pop_back();
      return std::string();
    }
  }
  decoded_ = std::move(text);

  if (!decoded_.starts_with(shown_)) {
    // Byte tokens after others whose character was shown. While they may be
    // the beginning of one more, wait.
    if (decoded_.ends_with(kReplacement) &&
        window_.size() - shown_tokens_ <= kIncompleteBytes) {
      return std::string();
    }
    window_.erase(window_.begin(), window_.begin() + shown_tokens_);
    shown_tokens_ = 0;
    shown_.clear();
    INGLE_ASSIGN_OR_RETURN(decoded_, decode(window_));
  }

  size_t settled = decoded_.size() - unsettled_size(decoded_);
  std::string added;
  if (settled > shown_.size()) {
    added = decoded_.substr(shown_.size(), settled - shown_.size());
    shown_ += added;
  }
  if (shown_.size() == decoded_.size()) {
    INGLE_RETURN_IF_ERROR(advance());
  }
  if (window_.size() >= kMaxWindow) {
    INGLE_ASSIGN_OR_RETURN(std::string rest, shrink());
    added += rest;
  }
  return added;
}

// True iff decoding leaves the token out because it is special. (A token with
// no text of its own may still matter: a space that is dropped at the
// beginning makes the next one stay.)
Result<bool> StreamDecoder::is_skipped(TokenId id) const {
  std::span<const TokenId> only(&id, 1);
  INGLE_ASSIGN_OR_RETURN(std::string visible, tokenizer_->decode(only, true));
  INGLE_ASSIGN_OR_RETURN(std::string full, tokenizer_->decode(only, false));
  return visible.empty() && !full.empty();
}

// All text was shown: what was shown before this push is not needed any more,
// unless decoding would then begin with a token that has no text yet.
Status StreamDecoder::advance() {
  if (shown_tokens_ > 0) {
    std::span<const TokenId> all(window_);
    INGLE_ASSIGN_OR_RETURN(
        std::string text, decode(all.subspan(shown_tokens_)));
    if (!text.empty()) {
      window_.erase(window_.begin(), window_.begin() + shown_tokens_);
      shown_ = text;
      decoded_ = std::move(text);
    }
  }
  shown_tokens_ = window_.size();
  return Status::ok();
}

// Keeps the last tokens of a full window, from a place where that makes no
// difference to their text. Where there is none, gives out all text there is.
Result<std::string> StreamDecoder::shrink() {
  size_t withheld = decoded_.size() - shown_.size();
  std::span<const TokenId> all(window_);
  std::string text;
  for (size_t count = 2 * kKeptWindow; count >= kKeptWindow; --count) {
    INGLE_ASSIGN_OR_RETURN(text, decode(all.last(count)));
    if (text.size() > withheld && decoded_.ends_with(text)) {
      window_.erase(window_.begin(), window_.end() - count);
      shown_ = text.substr(0, text.size() - withheld);
      decoded_ = std::move(text);
      shown_tokens_ = withheld == 0 ? count : 0;
      return std::string();
    }
  }
  std::string rest = decoded_.substr(shown_.size());
  window_.erase(window_.begin(), window_.end() - kKeptWindow);
  shown_ = text;
  decoded_ = std::move(text);
  shown_tokens_ = window_.size();
  return rest;
}

} // namespace ingle
