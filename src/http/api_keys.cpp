#include "http/api_keys.h"

#include <algorithm>
#include <cctype>

namespace ingle {
namespace {

// The time depends on the length of `sent` alone.
bool equal_in_constant_time(std::string_view sent, std::string_view key) {
  unsigned difference = sent.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < sent.size(); ++i) {
    const char other = key.empty() ? '\0' : key[i % key.size()];
    difference |= static_cast<unsigned char>(sent[i] ^ other);
  }
  return difference == 0;
}

// The scheme's name is case-insensitive (RFC 9110).
bool is_bearer(std::string_view scheme) {
  constexpr std::string_view kScheme = "bearer ";
  return scheme.size() == kScheme.size() &&
      std::equal(
             scheme.begin(), scheme.end(), kScheme.begin(), [](char a, char b) {
               return std::tolower(static_cast<unsigned char>(a)) == b;
             });
}

} // namespace

bool ApiKeys::admit(std::string_view authorization) const {
  if (keys_.empty()) {
    return true;
  }
  constexpr size_t kSchemeLength = 7; // "Bearer "
  if (!is_bearer(authorization.substr(0, kSchemeLength))) {
    return false;
  }
  const std::string_view sent = authorization.substr(kSchemeLength);
  bool found = false;
  for (const std::string& key : keys_) {
    found |= equal_in_constant_time(sent, key);
  }
  return found;
}

} // namespace ingle
