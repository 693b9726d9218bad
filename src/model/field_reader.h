// Typed fields of a JSON object that comes from a file.
//
// Private to the folders that read model files: includes nlohmann/json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "base/token.h"

namespace ingle {

// Far above any model, far below what could overflow a product of two.
inline constexpr int kMaxModelSize = 1 << 20;

// Reads fields and keeps the first failure, so that a list of reads stays a
// list: after them, look at status(). Absent and null are the same. Nothing is
// coerced. Errors: kCorruption, naming the file and the field.
class FieldReader {
 public:
  // `object` outlives the reader; `origin` is the file, and the place in it.
  FieldReader(const nlohmann::json& object, std::string origin)
      : object_(object), origin_(std::move(origin)) {}

  const Status& status() const {
    return first_failure_;
  }

  // The field, or null.
  const nlohmann::json* find(const char* key) const;
  // It is there, and null.
  bool is_null(const char* key) const;

  // An integer from 1 to `limit`. Returns 1 after a failure.
  int size(const char* key, int limit = kMaxModelSize);
  std::optional<int> optional_size(const char* key);
  // An integer from 0 to `limit`.
  std::optional<int> optional_count(const char* key, int limit);
  // A number that is finite as a float and within [low, high].
  float number(const char* key, double low, double high);
  std::optional<float>
  optional_number(const char* key, double low, double high);
  std::optional<bool> optional_bool(const char* key);
  std::optional<std::string> optional_string(const char* key);
  // One token id or a list of them; none where the field is absent.
  std::vector<TokenId> token_ids(const char* key);

 private:
  void missing(const char* key, const char* expected);
  void wrong(const char* key, const std::string& expected);

  const nlohmann::json& object_;
  std::string origin_;
  Status first_failure_;
};

} // namespace ingle
