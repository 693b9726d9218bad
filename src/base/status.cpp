#include "base/status.h"

namespace ingle {

std::string_view to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidRequest:
      return "invalid request";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kOverloaded:
      return "overloaded";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kTimeout:
      return "timeout";
    case StatusCode::kNoSpace:
      return "no space";
    case StatusCode::kIo:
      return "i/o error";
    case StatusCode::kCorruption:
      return "corrupt data";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status Status::with_context(std::string_view context) && {
  std::string message(context);
  message += ": ";
  message += message_;
  message_ = std::move(message);
  return std::move(*this);
}

} // namespace ingle
