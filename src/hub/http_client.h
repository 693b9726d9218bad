// One HTTP exchange, so that tests can be the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace ingle {

struct HttpRequest {
  std::string url;
  bool head_only = false; // HEAD instead of GET
  std::string token; // sent as a bearer's; empty: none
  uint64_t first_byte = 0; // above 0: the body from there on is asked for
};

// What stands before an answer's body.
struct HttpHead {
  int status = 0;
  std::map<std::string, std::string, std::less<>> fields; // by small letters
  std::string redirect; // absolute; empty: it leads nowhere else
  std::optional<std::chrono::seconds> retry_after;

  // Empty: it has no such field.
  std::string_view field(std::string_view name) const {
    const auto it = fields.find(name);
    return it == fields.end() ? std::string_view() : it->second;
  }
};

// Gets the body of an answer, piece by piece. What it returns other than kOk
// ends the exchange.
using HttpBody = std::function<Status(const HttpHead& head, ByteView piece)>;

// Threads: one.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Any status is an answer; redirects are told, not followed.
  // Errors: kIo (no connection, or it ended early), kTimeout (nothing came for
  //         a minute), kUnsupported (a certificate or a scheme that won't do),
  //         kCancelled soon after `stop` is requested, and what `body`
  //         returned.
  virtual Result<HttpHead> exchange(
      const HttpRequest& request,
      const HttpBody& body,
      const std::stop_token& stop) = 0;
};

} // namespace ingle
