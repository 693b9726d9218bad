// Who may use the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ingle {

// Threads: any; const.
class ApiKeys {
 public:
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  // True iff there are no keys, or `authorization` (the header's value) is
  // "Bearer " and one of them. Takes the same time whatever the key that is
  // sent and those that there are have in common.
  bool admit(std::string_view authorization) const;

 private:
  const std::vector<std::string> keys_;
};

} // namespace ingle
