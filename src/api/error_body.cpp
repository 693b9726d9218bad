#include "api/error_body.h"

#include "api/json_reader.h"
#include "engine/generator_errors.h"

namespace ingle {
namespace {

Json string_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

std::string shortened(const std::string& message) {
  constexpr std::string_view kEllipsis = "...";
  if (message.size() <= kMaxErrorMessage) {
    return message;
  }
  size_t end = kMaxErrorMessage - kEllipsis.size();
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(message[at]) & 0xc0) == 0x80;
  };
  while (end > 0 && continues(end)) {
    --end;
  }
  return message.substr(0, end).append(kEllipsis);
}

std::string_view error_type(const Status& status) {
  if (status.reason() == kContextOverBudget) {
    return "memory_admission";
  }
  return http_status(status) < 500 ? "invalid_request_error" : "server_error";
}

} // namespace

int http_status(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidRequest:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kOverloaded:
      return 503;
    case StatusCode::kCancelled:
      return 499; // only logged: the client is gone
    case StatusCode::kTimeout:
      return 504;
    case StatusCode::kNoSpace:
    case StatusCode::kIo:
    case StatusCode::kCorruption:
    case StatusCode::kUnsupported:
    case StatusCode::kInternal:
      return 500;
  }
  return 500;
}

std::string error_body(const Status& status) {
  Json error;
  error["message"] = shortened(status.message());
  error["type"] = error_type(status);
  error["param"] = string_or_null(status.where());
  error["code"] = string_or_null(status.reason());
  Json body;
  body["error"] = std::move(error);
  return to_text(body);
}

std::string quote_text(std::string_view text) {
  constexpr size_t kLongest = 100; // bytes
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      quoted += "\\x";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  quoted += text.size() > kLongest ? "...\"" : "\"";
  return quoted;
}

} // namespace ingle
