// Reads one JSON value character by character, as a model writes it.
#pragma once

#include <string>
#include <string_view>

namespace ingle {

// Appends `c` as it stands within a JSON string.
void append_escaped(std::string& out, char c);

// Strict JSON but for one thing: a line break or another control character
// within a string, which models do not always escape, comes out escaped.
//
// Limits:  kMaxDepth objects and arrays within each other.
// Threads: one.
class JsonScanner {
 public:
  static constexpr size_t kMaxDepth = 60;

  enum class Step {
    kMore,
    kDone, // the value ends with this character
    kPast, // it ended before this character, as only numbers do
    kFailed, // no JSON
  };

  // Appends what `c` came to. Not called again after another step than kMore.
  Step push(char c, std::string& out);
  // Of what was kMore so far: true iff it is a whole value, which then is a
  // number.
  bool is_whole() const;

 private:
  enum class State {
    kValue,
    kFirstItem, // or the end of an array
    kFirstKey, // or the end of an object
    kKey,
    kColon,
    kAfterValue,
    kString,
    kEscape,
    kHex,
    kLiteral,
    kMinus,
    kZero,
    kDigits,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
    kEnd,
  };

  Step step(char c, std::string& out);
  Step value(char c);
  Step open(char bracket, State next);
  Step close(char bracket);
  Step end_value();
  Step string(char c, std::string& out);
  Step escape(char c);
  Step hex(char c);
  Step number(char c);
  Step go(State next) {
    state_ = next;
    return Step::kMore;
  }

  State state_ = State::kValue;
  std::string open_; // the brackets
  bool in_key_ = false;
  int hex_left_ = 0;
  unsigned code_unit_ = 0; // of a \u escape
  bool is_half_ = false; // the first of a pair of surrogates was read
  std::string_view literal_left_;
};

} // namespace ingle
