// Strict reading of a request's JSON: nothing is coerced, and every complaint
// names the place ("messages[2].content: expected a string, got a number").
//
// Private to api/: includes the JSON library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "base/token.h"

namespace ingle {

// Keeps the order of keys: chat templates print objects (tools) as they came.
using Json = nlohmann::ordered_json;

// What a body may hold, so that a hostile one costs neither stack nor memory.
inline constexpr size_t kMaxRequestDepth = 64;
inline constexpr size_t kMaxRequestValues = size_t{1} << 20;

// What is left of a body's values, for documents within documents.
struct JsonBudget {
  size_t values = kMaxRequestValues;
  bool is_exceeded = false; // true iff a document was refused for it
};

// Errors: kInvalidRequest for anything but one JSON value in UTF-8, for a key
// that stands twice in an object, and over the limits above.
Result<Json> parse_json(std::string_view text, JsonBudget& budget);
Result<Json> parse_json(std::string_view text);

// Compact. Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& value);

// "`path`: expected `expected`, got a number"; where() is `path`.
Status
wrong_type(const std::string& path, std::string_view expected, const Json& got);
// "`path`: `what`"; where() is `path`.
Status invalid_field(const std::string& path, std::string_view what);
// "`path`: expected `expected`, got nothing"; where() is `path`.
Status missing_field(const std::string& path, std::string_view expected);
// "`path`: `what` is not supported yet: leave it out"; reason
// "unsupported_parameter".
Status not_supported_yet(const std::string& path, std::string_view what);

// "path[index]".
std::string indexed_path(const std::string& path, size_t index);

// The ids of an array that stands at `path`; none is negative.
Result<std::vector<TokenId>> token_ids(
    const Json& array,
    const std::string& path);

// A number that stands at `path`. Errors: kInvalidRequest.
Result<double>
number_in(const Json& value, const std::string& path, double min, double max);

// An object and where it stands.
//
// The getters return nothing for a field that is absent or null, and
// kInvalidRequest for one of another type or out of range.
class JsonObject {
 public:
  // `value` has to outlive the object. Errors: kInvalidRequest (no object).
  static Result<JsonObject> from(const Json& value, std::string path);

  // Null: the field is absent or null.
  const Json* find(std::string_view key) const;
  std::string path_of(std::string_view key) const;
  // The object in a field that has to be there. Errors: kInvalidRequest.
  Result<JsonObject> require_object(std::string_view key) const;

  Result<std::optional<bool>> get_bool(std::string_view key) const;
  Result<std::optional<int64_t>>
  get_integer(std::string_view key, int64_t min, int64_t max) const;
  // As get_integer(), where clients of other servers leave the field out by
  // sending -1.
  Result<std::optional<int64_t>>
  get_integer_or_unset(std::string_view key, int64_t min, int64_t max) const;
  Result<std::optional<double>>
  get_number(std::string_view key, double min, double max) const;
  Result<std::optional<std::string>> get_string(std::string_view key) const;

 private:
  JsonObject(const Json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  const Json* value_;
  std::string path_; // empty: the body itself
};

} // namespace ingle
