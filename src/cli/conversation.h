// The messages of a chat.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ingle {

// Errors: kInvalidRequest: `text`, which the flag gave, is not UTF-8. It would
// be said with other characters in the place of some.
Status check_text(const std::string& flag, std::string_view text);

class Conversation {
 public:
  // Empty: none, which leaves it to the model's template.
  void set_system(std::string text) {
    system_ = std::move(text);
  }
  void add_question(std::string text) {
    turns_.push_back(std::move(text));
  }
  void add_answer(std::string text) {
    turns_.push_back(std::move(text));
  }
  // Takes back what was added last.
  void drop_last() {
    turns_.pop_back();
  }
  // All but the system prompt.
  void clear() {
    turns_.clear();
  }
  size_t turns() const {
    return turns_.size();
  }

  // A JSON array of messages. What isn't UTF-8 is replaced.
  std::string to_json() const;

 private:
  std::string system_;
  std::vector<std::string> turns_; // questions and answers by turns
};

} // namespace ingle
