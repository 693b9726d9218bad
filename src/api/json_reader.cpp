#include "api/json_reader.h"

#include <limits>
#include <set>
#include <utility>

#include "api/error_body.h"

namespace ingle {
namespace {

std::string_view type_name(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return "a number";
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return "something else";
}

// Builds the document from the parser's events. The library's own builder
// looks each key up among all earlier ones of its object, which a body of many
// keys turns into hours; this one keeps them in a tree (a hash table has worst
// cases that a client can send).
class JsonBuilder {
 public:
  explicit JsonBuilder(JsonBudget& budget) : budget_(budget) {}

  Json take() {
    return std::move(root_);
  }
  const std::string& error() const {
    return error_;
  }

  bool null() {
    return add(Json(nullptr)) != nullptr;
  }
  bool boolean(bool value) {
    return add(Json(value)) != nullptr;
  }
  bool number_integer(Json::number_integer_t value) {
    return add(Json(value)) != nullptr;
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return add(Json(value)) != nullptr;
  }
  bool number_float(Json::number_float_t value, const std::string&) {
    return add(Json(value)) != nullptr;
  }
  bool string(std::string& value) {
    return add(Json(std::move(value))) != nullptr;
  }
  bool binary(Json::binary_t&) {
    return fail("a binary value");
  }
  bool start_object(size_t) {
    return open(Json::object());
  }
  bool end_object() {
    open_.pop_back();
    return true;
  }
  bool start_array(size_t) {
    return open(Json::array());
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool key(std::string& name) {
    if (!open_.back().keys.insert(name).second) {
      return fail("the key " + quote_text(name) + " twice in one object");
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(
      size_t position,
      const std::string&,
      const nlohmann::detail::exception&) {
    return fail("a syntax error at byte " + std::to_string(position));
  }

 private:
  struct Open {
    Json* value;
    std::set<std::string> keys;
  };

  bool fail(std::string what) {
    error_ = std::move(what);
    return false;
  }

  // Where the value now stands, or null over a limit.
  Json* add(Json value) {
    if (budget_.values == 0) {
      budget_.is_exceeded = true;
      fail("more than " + std::to_string(kMaxRequestValues) + " values");
      return nullptr;
    }
    --budget_.values;
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      return &items.emplace_back(std::move(value));
    }
    auto& fields = parent.get_ref<Json::object_t&>();
    return &fields.emplace_back(std::move(key_), std::move(value)).second;
  }

  bool open(Json value) {
    if (open_.size() == kMaxRequestDepth) {
      return fail(
          "one nested deeper than " + std::to_string(kMaxRequestDepth) +
          " levels");
    }
    Json* const placed = add(std::move(value));
    if (placed == nullptr) {
      return false;
    }
    open_.push_back({placed, {}});
    return true;
  }

  JsonBudget& budget_;
  Json root_;
  std::vector<Open> open_; // innermost last
  std::string key_;
  std::string error_;
};

// "10", "0.7": as people write them, without trailing zeros.
std::string number_text(double value) {
  return to_text(
      value == static_cast<double>(static_cast<int64_t>(value))
          ? Json(static_cast<int64_t>(value))
          : Json(value));
}

template <typename T>
std::string range_text(T min, T max) {
  return " from " + to_text(Json(min)) + " to " + to_text(Json(max));
}

} // namespace

Result<Json> parse_json(std::string_view text) {
  JsonBudget budget;
  return parse_json(text, budget);
}

Result<Json> parse_json(std::string_view text, JsonBudget& budget) {
  JsonBuilder builder(budget);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return Status::invalid_request(
        "the body: expected one JSON value in UTF-8, got " + builder.error());
  }
  return builder.take();
}

std::string to_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status invalid_field(const std::string& path, std::string_view what) {
  std::string message = path.empty() ? "the body" : path;
  message += ": ";
  message += what;
  return Status::invalid_request(std::move(message)).with_where(path);
}

Status missing_field(const std::string& path, std::string_view expected) {
  return invalid_field(
      path, "expected " + std::string(expected) + ", got nothing");
}

Status not_supported_yet(const std::string& path, std::string_view what) {
  return invalid_field(
             path, std::string(what) + " is not supported yet: leave it out")
      .with_reason("unsupported_parameter");
}

std::string indexed_path(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

Status wrong_type(
    const std::string& path,
    std::string_view expected,
    const Json& got) {
  std::string what = "expected ";
  what += expected;
  what += ", got ";
  what += type_name(got);
  return invalid_field(path, what);
}

Result<std::vector<TokenId>> token_ids(
    const Json& array,
    const std::string& path) {
  constexpr uint64_t kLargest = std::numeric_limits<TokenId>::max();
  const std::string expected =
      "a token id (an integer" + range_text<uint64_t>(0, kLargest) + ")";
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (const Json& item : array) {
    if (!item.is_number()) {
      return wrong_type(indexed_path(path, ids.size()), expected, item);
    }
    if (!item.is_number_unsigned() || item.get<uint64_t>() > kLargest) {
      return invalid_field(
          indexed_path(path, ids.size()),
          "expected " + expected + ", got " + to_text(item));
    }
    ids.push_back(static_cast<TokenId>(item.get<uint64_t>()));
  }
  return ids;
}

Result<JsonObject> JsonObject::from(const Json& value, std::string path) {
  if (!value.is_object()) {
    return wrong_type(path, "an object", value);
  }
  return JsonObject(value, std::move(path));
}

const Json* JsonObject::find(std::string_view key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

std::string JsonObject::path_of(std::string_view key) const {
  std::string path = path_;
  if (!path.empty()) {
    path += '.';
  }
  path += key;
  return path;
}

Result<JsonObject> JsonObject::require_object(std::string_view key) const {
  const Json* const value = find(key);
  return value == nullptr ? missing_field(path_of(key), "an object")
                          : from(*value, path_of(key));
}

Result<std::optional<bool>> JsonObject::get_bool(std::string_view key) const {
  const Json* const value = find(key);
  if (value == nullptr) {
    return std::optional<bool>();
  }
  if (!value->is_boolean()) {
    return wrong_type(path_of(key), "a boolean", *value);
  }
  return std::optional(value->get<bool>());
}

Result<std::optional<int64_t>>
JsonObject::get_integer(std::string_view key, int64_t min, int64_t max) const {
  const Json* const value = find(key);
  if (value == nullptr) {
    return std::optional<int64_t>();
  }
  const std::string expected = "an integer" + range_text(min, max);
  if (!value->is_number()) {
    return wrong_type(path_of(key), expected, *value);
  }
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  const bool representable = value->is_number_integer() &&
      !(value->is_number_unsigned() && value->get<uint64_t>() > kLargest);
  if (!representable || value->get<int64_t>() < min ||
      value->get<int64_t>() > max) {
    return invalid_field(
        path_of(key), "expected " + expected + ", got " + to_text(*value));
  }
  return std::optional(value->get<int64_t>());
}

Result<std::optional<int64_t>> JsonObject::get_integer_or_unset(
    std::string_view key,
    int64_t min,
    int64_t max) const {
  const Json* const value = find(key);
  const bool unset = value != nullptr && value->is_number_integer() &&
      !value->is_number_unsigned() && value->get<int64_t>() == -1;
  return unset ? std::optional<int64_t>() : get_integer(key, min, max);
}

Result<double>
number_in(const Json& value, const std::string& path, double min, double max) {
  const std::string expected =
      "a number from " + number_text(min) + " to " + number_text(max);
  if (!value.is_number()) {
    return wrong_type(path, expected, value);
  }
  const auto number = value.get<double>();
  if (!(number >= min && number <= max)) {
    return invalid_field(
        path, "expected " + expected + ", got " + to_text(value));
  }
  return number;
}

Result<std::optional<double>>
JsonObject::get_number(std::string_view key, double min, double max) const {
  const Json* const value = find(key);
  if (value == nullptr) {
    return std::optional<double>();
  }
  INGLE_ASSIGN_OR_RETURN(
      const double number, number_in(*value, path_of(key), min, max));
  return std::optional(number);
}

Result<std::optional<std::string>> JsonObject::get_string(
    std::string_view key) const {
  const Json* const value = find(key);
  if (value == nullptr) {
    return std::optional<std::string>();
  }
  if (!value->is_string()) {
    return wrong_type(path_of(key), "a string", *value);
  }
  return std::optional(value->get<std::string>());
}

} // namespace ingle
