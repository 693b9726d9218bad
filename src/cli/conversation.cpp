#include "cli/conversation.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace ingle {

Status check_text(const std::string& flag, std::string_view text) {
  return is_utf8(text)
      ? Status::ok()
      : Status::invalid_request(
            flag + " is not UTF-8 text: use a terminal with a UTF-8 locale");
}

std::string Conversation::to_json() const {
  auto messages = nlohmann::ordered_json::array();
  if (!system_.empty()) {
    messages.push_back({{"role", "system"}, {"content", system_}});
  }
  for (size_t i = 0; i < turns_.size(); ++i) {
    messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", turns_[i]}});
  }
  return messages.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace ingle
