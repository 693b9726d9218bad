#include "cli/conversation.h"

#include <nlohmann/json.hpp>

namespace ingle {

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
