#include "text/boundary.h"

namespace ingle {

Status status_of(
    IngleTextCode code,
    const RustText& message,
    StatusCode fault,
    std::string_view where) {
  switch (code) {
    case kIngleTextOk:
      return Status::ok();
    case kIngleTextFailed:
      return Status(fault, message.str()).with_context(where);
    case kIngleTextRaised:
      return Status(fault, message.str());
    case kIngleTextPanicked:
      return Status::internal("the text library failed: " + message.str())
          .with_context(where);
    case kIngleTextBroken:
      return Status::corruption(
                 "the text library cannot use this file: " + message.str())
          .with_context(where);
    case kIngleTextAbsent:
      return Status::not_found("no such token").with_context(where);
  }
  return Status::internal("the text library gave an unknown code")
      .with_context(where);
}

} // namespace ingle
