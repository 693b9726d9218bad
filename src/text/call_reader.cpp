#include "text/call_reader.h"

#include <algorithm>
#include <utility>

#include "text/json_scanner.h"
#include "text/white_space.h"

namespace ingle {
namespace {

constexpr size_t kMaxHead = 512; // bytes of a name and what stands around it

// The arguments as JSON: their closing brace is kept back.
CallReader::Step push_arguments(JsonScanner& scanner, char c, CallText& call) {
  if (!call.has_begun) {
    if (is_space(c)) {
      return CallReader::Step::kMore;
    }
    if (c != '{') {
      return CallReader::Step::kFailed;
    }
    call.has_begun = true;
  }
  switch (scanner.push(c, call.arguments)) {
    case JsonScanner::Step::kMore:
      return CallReader::Step::kMore;
    case JsonScanner::Step::kDone:
      call.arguments.pop_back();
      return CallReader::Step::kDone;
    default:
      return CallReader::Step::kFailed;
  }
}

class JsonCallReader final : public CallReader {
 public:
  JsonCallReader(const ToolSignatures& tools, bool name_first)
      : CallReader(tools), name_first_(name_first) {}

  Step push(char c) override {
    switch (state_) {
      case State::kKeyText:
        return key_text(c);
      case State::kName:
        return name(c);
      case State::kArguments: {
        const Step step = push_arguments(scanner_, c, call_);
        return step == Step::kDone ? go(State::kAfterValue) : step;
      }
      case State::kOther:
        return other(c);
      default:
        return is_space(c) ? Step::kMore : between(c);
    }
  }

 private:
  enum class State {
    kOpen,
    kFirstKey,
    kKey,
    kKeyText,
    kColon,
    kNameOpen,
    kName,
    kArguments,
    kOther,
    kAfterValue,
  };

  Step go(State next) {
    state_ = next;
    return Step::kMore;
  }

  Step between(char c) {
    switch (state_) {
      case State::kOpen:
        return c == '{' ? go(State::kFirstKey) : Step::kFailed;
      case State::kFirstKey:
      case State::kKey:
        key_.clear();
        return c == '"' ? go(State::kKeyText) : Step::kFailed;
      case State::kColon:
        return c == ':' ? value() : Step::kFailed;
      case State::kNameOpen:
        return c == '"' ? go(State::kName) : Step::kFailed;
      default:
        break;
    }
    if (c == ',') {
      return go(State::kKey);
    }
    if (c != '}' || call_.tool == nullptr) {
      return Step::kFailed;
    }
    if (!call_.has_begun) {
      call_.has_begun = true;
      call_.arguments = "{";
    }
    return Step::kDone;
  }

  Step key_text(char c) {
    if (c == '"') {
      const bool is_known = key_ == "name" || key_ == "type";
      return name_first_ && call_.tool == nullptr && !is_known
          ? Step::kFailed
          : go(State::kColon);
    }
    key_ += c;
    return c == '\\' || key_.size() > kMaxHead ? Step::kFailed : Step::kMore;
  }

  Step value() {
    if (key_ == "name") {
      return call_.tool == nullptr ? go(State::kNameOpen) : Step::kFailed;
    }
    if (key_ == "arguments" || key_ == "parameters") {
      return call_.has_begun ? Step::kFailed : go(State::kArguments);
    }
    scanner_of_other_ = JsonScanner();
    return go(State::kOther);
  }

  Step name(char c) {
    if (c == '"') {
      return set_name(name_) ? go(State::kAfterValue) : Step::kFailed;
    }
    name_ += c;
    return c == '\\' || name_.size() > kMaxHead ? Step::kFailed : Step::kMore;
  }

  Step other(char c) {
    std::string dropped;
    switch (scanner_of_other_.push(c, dropped)) {
      case JsonScanner::Step::kMore:
        return Step::kMore;
      case JsonScanner::Step::kDone:
        return go(State::kAfterValue);
      case JsonScanner::Step::kPast:
        state_ = State::kAfterValue;
        return push(c);
      case JsonScanner::Step::kFailed:
        break;
    }
    return Step::kFailed;
  }

  const bool name_first_;
  State state_ = State::kOpen;
  std::string key_;
  std::string name_;
  JsonScanner scanner_;
  JsonScanner scanner_of_other_;
};

class NamedCallReader final : public CallReader {
 public:
  NamedCallReader(
      const ToolSignatures& tools,
      std::string after_name,
      std::string aside)
      : CallReader(tools),
        after_name_(std::move(after_name)),
        aside_(std::move(aside)) {}

  Step push(char c) override {
    if (call_.tool != nullptr) {
      return push_arguments(scanner_, c, call_);
    }
    head_ += c;
    if (!head_.ends_with(after_name_)) {
      return head_.size() > kMaxHead ? Step::kFailed : Step::kMore;
    }
    head_.resize(head_.size() - after_name_.size());
    if (!aside_.empty()) {
      head_.resize(std::min(head_.size(), head_.find(aside_)));
    }
    return set_name(head_) ? Step::kMore : Step::kFailed;
  }

 private:
  const std::string after_name_;
  const std::string aside_;
  std::string head_;
  JsonScanner scanner_;
};

} // namespace

bool CallReader::set_name(std::string_view name) {
  name = trimmed(name);
  const auto tool = tools_.find(name);
  if (tool == tools_.end()) {
    return false;
  }
  call_.tool = &tool->second;
  call_.name = name;
  return true;
}

std::unique_ptr<CallReader> make_json_call_reader(
    const ToolSignatures& tools,
    bool name_first) {
  return std::make_unique<JsonCallReader>(tools, name_first);
}

std::unique_ptr<CallReader> make_named_call_reader(
    const ToolSignatures& tools,
    std::string after_name,
    std::string aside) {
  return std::make_unique<NamedCallReader>(
      tools, std::move(after_name), std::move(aside));
}

} // namespace ingle
