#include "api/error_body.h"

#include "api/json_reader.h"

namespace ingle {
namespace {

Json string_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
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
  error["message"] = status.message();
  error["type"] =
      http_status(status) < 500 ? "invalid_request_error" : "server_error";
  error["param"] = string_or_null(status.where());
  error["code"] = string_or_null(status.reason());
  Json body;
  body["error"] = std::move(error);
  return to_text(body);
}

} // namespace ingle
