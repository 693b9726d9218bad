// Calls as Gemma 4 writes them.
#include <utility>

#include "text/call_reader.h"
#include "text/json_scanner.h"
#include "text/white_space.h"

namespace ingle {
namespace {

constexpr size_t kMaxName = 512; // bytes

// A bare word -> JSON: itself where it is JSON, else a string.
std::string json_of_word(const std::string& word) {
  JsonScanner scanner;
  std::string json;
  auto step = JsonScanner::Step::kMore;
  for (size_t i = 0; i < word.size() && step == JsonScanner::Step::kMore; ++i) {
    step = scanner.push(word[i], json);
  }
  const bool is_json = json.size() == word.size() &&
      (step == JsonScanner::Step::kDone ||
       (step == JsonScanner::Step::kMore && scanner.is_whole()));
  if (is_json) {
    return json;
  }
  json = "\"";
  for (const char c : word) {
    append_escaped(json, c);
  }
  return json + '"';
}

class GemmaCallReader final : public CallReader {
 public:
  GemmaCallReader(const ToolSignatures& tools, std::string quote)
      : CallReader(tools), quote_(std::move(quote)) {}

  Step push(char c) override {
    switch (state_) {
      case State::kName:
        return name(c);
      case State::kQuoted:
        return quoted(c);
      case State::kKey:
        return key(c);
      case State::kWord:
        return word(c);
      case State::kFirst:
      case State::kValue:
      case State::kAfterKey:
      case State::kAfterValue:
        break;
    }
    return opens_quote(c) ? open_quote(c)
        : is_space(c)     ? Step::kMore
                          : between(c);
  }

 private:
  enum class State {
    kName,
    kFirst, // a key or an item, or the end
    kKey, // within a bare one, or in front of it
    kAfterKey,
    kValue,
    kQuoted,
    kWord,
    kAfterValue,
  };

  std::string& out() {
    return call_.arguments;
  }
  bool in_object() const {
    return open_.back() == '{';
  }
  Step go(State next) {
    state_ = next;
    return Step::kMore;
  }

  Step name(char c) {
    if (c != '{') {
      text_ += c;
      return text_.size() > kMaxName ? Step::kFailed : Step::kMore;
    }
    if (!set_name(text_)) {
      return Step::kFailed;
    }
    call_.has_begun = true;
    return open('{');
  }

  Step open(char bracket) {
    if (open_.size() >= JsonScanner::kMaxDepth) {
      return Step::kFailed;
    }
    open_ += bracket;
    out() += bracket;
    return go(State::kFirst);
  }

  Step close(char bracket) {
    const char opening = bracket == '}' ? '{' : '[';
    if (open_.back() != opening) {
      return Step::kFailed;
    }
    open_.pop_back();
    if (open_.empty()) {
      return Step::kDone; // its brace is kept back
    }
    out() += bracket;
    return go(State::kAfterValue);
  }

  // Models slip into JSON's own quotes.
  bool opens_quote(char c) const {
    const bool expects_text =
        state_ == State::kFirst || state_ == State::kValue;
    return expects_text && (c == quote_.front() || c == '"');
  }

  Step open_quote(char c) {
    comma_ = false;
    is_json_string_ = c == '"';
    closing_ = is_json_string_ ? "\"" : quote_;
    is_key_ = state_ == State::kFirst && in_object();
    text_.clear();
    out() += '"';
    left_of_opening_ = closing_.size() - 1;
    return go(State::kQuoted);
  }

  // `text_` is what may be the beginning of the closing quote.
  Step quoted(char c) {
    if (left_of_opening_ > 0) {
      const char expected = closing_[closing_.size() - left_of_opening_];
      --left_of_opening_;
      return c == expected ? Step::kMore : Step::kFailed;
    }
    if (is_escaped_) {
      is_escaped_ = false;
      return escape(c);
    }
    if (is_json_string_ && c == '\\') {
      is_escaped_ = true;
      return Step::kMore;
    }
    text_ += c;
    while (!text_.empty() && !closing_.starts_with(text_)) {
      append_escaped(out(), text_.front());
      text_.erase(0, 1);
    }
    if (text_ != closing_) {
      return Step::kMore;
    }
    text_.clear();
    out() += '"';
    return go(is_key_ ? State::kAfterKey : State::kAfterValue);
  }

  Step escape(char c) {
    if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) {
      return Step::kFailed;
    }
    out() += '\\';
    out() += c;
    return Step::kMore;
  }

  Step key(char c) {
    const bool ends = c == '}' || c == '{' || c == ',' || c == quote_.front();
    if (ends || text_.size() > kMaxName) {
      return Step::kFailed;
    }
    if (c != ':') {
      text_ += c;
      return Step::kMore;
    }
    text_.resize(without_trailing_space(text_).size());
    if (text_.empty()) {
      return Step::kFailed;
    }
    out() += '"';
    for (const char of_key : text_) {
      append_escaped(out(), of_key);
    }
    out() += '"';
    state_ = State::kAfterKey;
    return between(c);
  }

  // Numbers, true, false, null, and strings that have lost their quotes.
  Step word(char c) {
    if (c == quote_.front()) {
      return Step::kFailed;
    }
    if (c != ',' && c != '}' && c != ']') {
      text_ += c;
      return Step::kMore;
    }
    text_.resize(without_trailing_space(text_).size());
    out() += json_of_word(text_);
    state_ = State::kAfterValue;
    return between(c);
  }

  Step between(char c) {
    switch (state_) {
      case State::kAfterKey:
        out() += ':';
        return c == ':' ? go(State::kValue) : Step::kFailed;
      case State::kAfterValue:
        if (c == ',') {
          out() += ',';
          comma_ = true;
          return go(in_object() ? State::kFirst : State::kValue);
        }
        return c == '}' || c == ']' ? close(c) : Step::kFailed;
      default:
        break;
    }
    const bool after_comma = std::exchange(comma_, false);
    if (state_ == State::kFirst && (c == '}' || c == ']')) {
      return after_comma ? Step::kFailed : close(c);
    }
    if (state_ == State::kFirst && in_object()) {
      text_.clear();
      state_ = State::kKey;
      return key(c);
    }
    if (c == '{' || c == '[') {
      return open(c);
    }
    if (c == ',' || c == '}' || c == ']' || c == ':') {
      return Step::kFailed;
    }
    text_ = c;
    return go(State::kWord);
  }

  const std::string quote_;
  State state_ = State::kName;
  std::string open_; // the brackets
  std::string text_; // of the name, a key or a word
  std::string closing_;
  size_t left_of_opening_ = 0; // bytes of the opening quote to come
  bool is_key_ = false;
  bool is_json_string_ = false;
  bool is_escaped_ = false;
  bool comma_ = false; // stands in front: a key or an item has to follow
};

} // namespace

std::unique_ptr<CallReader> make_gemma_call_reader(
    const ToolSignatures& tools,
    std::string quote) {
  return std::make_unique<GemmaCallReader>(tools, std::move(quote));
}

} // namespace ingle
