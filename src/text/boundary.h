// Owners for what crosses the boundary to Rust. Private to text/.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/token.h"
#include "text/rust/ingle_text.h"

namespace ingle {

// A buffer that the crate fills: a result, or the message of a failure.
class RustText {
 public:
  RustText() = default;
  ~RustText() {
    ingle_text_buffer_free(buffer_);
  }
  RustText(const RustText&) = delete;
  RustText& operator=(const RustText&) = delete;

  IngleTextBuffer* out() {
    return &buffer_;
  }
  std::string str() const {
    return buffer_.size == 0 ? std::string()
                             : std::string(buffer_.data, buffer_.size);
  }

 private:
  IngleTextBuffer buffer_{nullptr, 0};
};

class RustIds {
 public:
  RustIds() = default;
  ~RustIds() {
    ingle_text_ids_free(ids_);
  }
  RustIds(const RustIds&) = delete;
  RustIds& operator=(const RustIds&) = delete;

  IngleTextIds* out() {
    return &ids_;
  }
  std::span<const TokenId> span() const {
    return {ids_.data, ids_.size};
  }

 private:
  IngleTextIds ids_{nullptr, 0};
};

// What a call that failed means: `fault` where the input can't be used,
// kInternal for a panic of ours, kCorruption for one of a library. "where:
// message".
Status status_of(
    IngleTextCode code,
    const RustText& message,
    StatusCode fault,
    std::string_view where);

} // namespace ingle
