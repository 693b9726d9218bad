#include "model/field_reader.h"

#include <array>
#include <cstdio>
#include <limits>

namespace ingle {
namespace {

using Json = nlohmann::json;

// Within [low, high]; the file's integers may be of either sign.
bool is_integer_within(const Json& value, int64_t low, int64_t high) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return number <= static_cast<uint64_t>(high) &&
        static_cast<int64_t>(number) >= low;
  }
  return value.is_number_integer() && value.get<int64_t>() >= low &&
      value.get<int64_t>() <= high;
}

std::string describe(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

} // namespace

const Json* FieldReader::find(const char* key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void FieldReader::missing(const char* key, const char* expected) {
  if (first_failure_.is_ok()) {
    first_failure_ = Status::corruption(
        origin_ + ": the field '" + key + "' is missing (" + expected +
        " is expected)");
  }
}

void FieldReader::wrong(const char* key, const std::string& expected) {
  if (first_failure_.is_ok()) {
    first_failure_ = Status::corruption(
        origin_ + ": the field '" + key + "' has to be " + expected);
  }
}

bool FieldReader::is_null(const char* key) const {
  const auto it = object_.find(key);
  return it != object_.end() && it->is_null();
}

int FieldReader::size(const char* key, int limit) {
  const Json* field = find(key);
  if (field == nullptr) {
    missing(key, "a positive integer");
    return 1;
  }
  if (!is_integer_within(*field, 1, limit)) {
    wrong(key, "an integer from 1 to " + std::to_string(limit));
    return 1;
  }
  return field->get<int>();
}

std::optional<int> FieldReader::optional_size(const char* key) {
  return find(key) ? std::optional(size(key)) : std::nullopt;
}

std::optional<int> FieldReader::optional_count(const char* key, int limit) {
  const Json* field = find(key);
  if (field == nullptr) {
    return std::nullopt;
  }
  if (!is_integer_within(*field, 0, limit)) {
    wrong(key, "an integer from 0 to " + std::to_string(limit));
    return std::nullopt;
  }
  return field->get<int>();
}

float FieldReader::number(const char* key, double low, double high) {
  const Json* field = find(key);
  if (field == nullptr) {
    missing(key, "a number");
    return 1;
  }
  const double value = field->is_number()
      ? field->get<double>()
      : std::numeric_limits<double>::quiet_NaN();
  if (!(value >= low && value <= high)) {
    wrong(key, "a number from " + describe(low) + " to " + describe(high));
    return 1;
  }
  return static_cast<float>(value);
}

std::optional<float>
FieldReader::optional_number(const char* key, double low, double high) {
  return find(key) ? std::optional(number(key, low, high)) : std::nullopt;
}

std::optional<bool> FieldReader::optional_bool(const char* key) {
  const Json* field = find(key);
  if (field == nullptr) {
    return std::nullopt;
  }
  if (!field->is_boolean()) {
    wrong(key, "true or false");
    return std::nullopt;
  }
  return field->get<bool>();
}

std::optional<std::string> FieldReader::optional_string(const char* key) {
  const Json* field = find(key);
  if (field == nullptr) {
    return std::nullopt;
  }
  if (!field->is_string()) {
    wrong(key, "a string");
    return std::nullopt;
  }
  return field->get<std::string>();
}

std::vector<TokenId> FieldReader::token_ids(const char* key) {
  std::vector<TokenId> ids;
  const auto add = [&](const Json& id) {
    if (is_integer_within(id, 0, std::numeric_limits<TokenId>::max())) {
      ids.push_back(id.get<TokenId>());
    } else {
      wrong(key, "a token id or a list of them");
    }
  };
  const Json* field = find(key);
  if (field == nullptr) {
    return ids;
  }
  if (!field->is_array()) {
    add(*field);
    return ids;
  }
  for (const Json& id : *field) {
    add(id);
  }
  return ids;
}

} // namespace ingle
