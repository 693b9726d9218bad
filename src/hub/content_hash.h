// What a file's bytes have to hash to, as a hub's etag says it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace ingle {

// An etag of 64 digits is the sha256 of the bytes (large files); one of 40 is
// what git names a file by: the sha1 of its size and its bytes. The digits are
// hexadecimal, in small letters.
//
// Threads: one.
class ContentHash {
 public:
  // Of a file of `size` bytes. Nothing: the etag is neither of them.
  static std::optional<ContentHash> of_etag(
      std::string_view etag,
      uint64_t size);

  void update(ByteView bytes);
  // In hexadecimal, of what was put in so far; ends this object's use.
  std::string finish();

 private:
  struct State;
  struct Deleter {
    void operator()(State* state) const;
  };
  explicit ContentHash(std::unique_ptr<State, Deleter> state);

  std::unique_ptr<State, Deleter> state_;
};

} // namespace ingle
