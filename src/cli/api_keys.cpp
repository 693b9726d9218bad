#include "cli/api_keys.h"

#include <algorithm>
#include <sstream>

namespace ingle {
namespace {

bool can_be_sent(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return c > ' ' && c <= '~';
  });
}

// The key itself is not for messages.
Status bad_key(const std::string& where) {
  return Status::invalid_request(
      where + ": an API key has to be printable ASCII without blanks");
}

} // namespace

Result<std::vector<std::string>> read_api_keys(
    FileSystem& fs,
    std::vector<std::string> given,
    const std::string& file) {
  if (!std::all_of(given.begin(), given.end(), can_be_sent)) {
    return bad_key(std::string("--api-key or ") + kApiKeyVariable);
  }
  std::vector<std::string> keys = std::move(given);
  if (!file.empty()) {
    INGLE_ASSIGN_OR_RETURN(auto text, fs.read(file));
    const size_t before = keys.size();
    std::istringstream lines(std::move(text));
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      line.erase(line.find_last_not_of(" \t\r") + 1);
      line.erase(0, line.find_first_not_of(" \t"));
      if (line.empty()) {
        continue;
      }
      if (!can_be_sent(line)) {
        return bad_key(file + ", line " + std::to_string(number));
      }
      keys.push_back(std::move(line));
    }
    if (keys.size() == before) {
      return Status::invalid_request(file + ": there is no API key in it");
    }
  }
  return keys;
}

} // namespace ingle
