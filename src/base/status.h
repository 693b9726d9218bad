// Status and Result<T>: how modules tell each other that something failed.
//
// Between modules nothing throws. MLX and Boost do; they are caught in
// run_mlx() (model/) and at the top of the connection coroutine (http/).
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ingle {

enum class StatusCode {
  kOk,
  kInvalidRequest, // the caller's fault; made by api/, text/, admission, cli/
  kNotFound,
  kOverloaded,
  kCancelled,
  kTimeout,
  kNoSpace,
  kIo,
  kCorruption, // bytes that are not what their format says
  kUnsupported, // well formed, but not something ingle can do
  kInternal,
};

// "ok", "invalid request", "no space", ...; for log lines, not for matching.
std::string_view to_string(StatusCode code);

// A code and one clear line: what failed, where, and what to do about it.
//
// `reason` is a stable machine-readable word that a client may match on
// ("context_length_exceeded"); `where` names the place in the input (a JSON
// path). Both are empty unless set.
class [[nodiscard]] Status {
 public:
  Status() = default; // kOk
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  static Status ok() {
    return {};
  }
  static Status invalid_request(std::string message) {
    return {StatusCode::kInvalidRequest, std::move(message)};
  }
  static Status not_found(std::string message) {
    return {StatusCode::kNotFound, std::move(message)};
  }
  static Status overloaded(std::string message) {
    return {StatusCode::kOverloaded, std::move(message)};
  }
  static Status cancelled(std::string message) {
    return {StatusCode::kCancelled, std::move(message)};
  }
  static Status no_space(std::string message) {
    return {StatusCode::kNoSpace, std::move(message)};
  }
  static Status io(std::string message) {
    return {StatusCode::kIo, std::move(message)};
  }
  static Status corruption(std::string message) {
    return {StatusCode::kCorruption, std::move(message)};
  }
  static Status unsupported(std::string message) {
    return {StatusCode::kUnsupported, std::move(message)};
  }
  static Status internal(std::string message) {
    return {StatusCode::kInternal, std::move(message)};
  }

  bool is_ok() const {
    return code_ == StatusCode::kOk;
  }
  StatusCode code() const {
    return code_;
  }
  const std::string& message() const {
    return message_;
  }
  const std::string& reason() const {
    return reason_;
  }
  const std::string& where() const {
    return where_;
  }

  Status with_reason(std::string reason) && {
    reason_ = std::move(reason);
    return std::move(*this);
  }
  Status with_where(std::string where) && {
    where_ = std::move(where);
    return std::move(*this);
  }
  // The same failure, "context: message".
  Status with_context(std::string_view context) &&;

  bool operator==(const Status&) const = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::string reason_;
  std::string where_;
};

// A value, or the Status that says why there is none. Never holds kOk without
// a value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {
    assert(!std::get<1>(state_).is_ok());
  }

  bool is_ok() const {
    return state_.index() == 0;
  }
  // The failure, or kOk.
  Status status() const& {
    return is_ok() ? Status() : std::get<1>(state_);
  }
  Status status() && {
    return is_ok() ? Status() : std::move(std::get<1>(state_));
  }

  // Requires: is_ok().
  T& value() & {
    assert(is_ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(is_ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(is_ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T* operator->() {
    return &value();
  }
  const T* operator->() const {
    return &value();
  }
  T& operator*() & {
    return value();
  }
  const T& operator*() const& {
    return value();
  }
  T&& operator*() && {
    return std::move(*this).value();
  }

 private:
  std::variant<T, Status> state_;
};

} // namespace ingle

// Returns the Status of `expr` from the enclosing function if it failed.
#define INGLE_RETURN_IF_ERROR(expr)                                         \
  do {                                                                      \
    if (::ingle::Status failure_status = (expr); !failure_status.is_ok()) { \
      return failure_status;                                                \
    }                                                                       \
  } while (false)

#define INGLE_CONCAT_INNER(a, b) a##b
#define INGLE_CONCAT(a, b) INGLE_CONCAT_INNER(a, b)

// INGLE_ASSIGN_OR_RETURN(auto x, f()): x is f()'s value, or f()'s Status is
// returned.
#define INGLE_ASSIGN_OR_RETURN(lhs, expr) \
  INGLE_ASSIGN_OR_RETURN_IMPL(INGLE_CONCAT(result_, __LINE__), lhs, expr)
#define INGLE_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                \
  if (!result.is_ok()) {                               \
    return std::move(result).status();                 \
  }                                                    \
  lhs = std::move(result).value()
