#include "text/json_scanner.h"

#include "text/white_space.h"

namespace ingle {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// 16 for what is no digit.
unsigned hex_digit(char c) {
  return is_digit(c)         ? static_cast<unsigned>(c - '0')
      : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
      : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A') + 10
                             : 16;
}

} // namespace

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (byte < 0x20) {
    out += "\\u00";
    out += kHex[byte >> 4];
    out += kHex[byte & 0xF];
  } else {
    out += c;
  }
}

JsonScanner::Step JsonScanner::push(char c, std::string& out) {
  const bool escapes_itself = state_ == State::kString;
  const Step result = step(c, out);
  if (!escapes_itself && result != Step::kPast) {
    out += c;
  }
  return result;
}

bool JsonScanner::is_whole() const {
  return open_.empty() &&
      (state_ == State::kZero || state_ == State::kDigits ||
       state_ == State::kFraction || state_ == State::kExponentDigits);
}

JsonScanner::Step JsonScanner::step(char c, std::string& out) {
  switch (state_) {
    case State::kString:
      return string(c, out);
    case State::kEscape:
      return escape(c);
    case State::kHex:
      return hex(c);
    case State::kLiteral:
      if (c != literal_left_.front()) {
        return Step::kFailed;
      }
      literal_left_.remove_prefix(1);
      return literal_left_.empty() ? end_value() : Step::kMore;
    case State::kMinus:
    case State::kZero:
    case State::kDigits:
    case State::kPoint:
    case State::kFraction:
    case State::kExponent:
    case State::kExponentSign:
    case State::kExponentDigits:
      return number(c);
    default:
      return is_space(c) ? Step::kMore : value(c);
  }
}

// Between tokens.
JsonScanner::Step JsonScanner::value(char c) {
  const bool in_object = !open_.empty() && open_.back() == '{';
  switch (state_) {
    case State::kFirstKey:
    case State::kKey:
      if (c == '"') {
        in_key_ = true;
        return go(State::kString);
      }
      return c == '}' && state_ == State::kFirstKey ? close('{')
                                                    : Step::kFailed;
    case State::kColon:
      return c == ':' ? go(State::kValue) : Step::kFailed;
    case State::kAfterValue:
      if (c == ',') {
        return go(in_object ? State::kKey : State::kValue);
      }
      return c == '}' ? close('{') : c == ']' ? close('[') : Step::kFailed;
    default:
      break;
  }
  switch (c) {
    case ']':
      return state_ == State::kFirstItem ? close('[') : Step::kFailed;
    case '{':
      return open('{', State::kFirstKey);
    case '[':
      return open('[', State::kFirstItem);
    case '"':
      in_key_ = false;
      return go(State::kString);
    case '-':
      return go(State::kMinus);
    case 't':
      literal_left_ = "rue";
      return go(State::kLiteral);
    case 'f':
      literal_left_ = "alse";
      return go(State::kLiteral);
    case 'n':
      literal_left_ = "ull";
      return go(State::kLiteral);
    default:
      break;
  }
  return c == '0'   ? go(State::kZero)
      : is_digit(c) ? go(State::kDigits)
                    : Step::kFailed;
}

JsonScanner::Step JsonScanner::open(char bracket, State next) {
  if (open_.size() >= kMaxDepth) {
    return Step::kFailed;
  }
  open_ += bracket;
  return go(next);
}

JsonScanner::Step JsonScanner::close(char bracket) {
  if (open_.empty() || open_.back() != bracket) {
    return Step::kFailed;
  }
  open_.pop_back();
  return end_value();
}

JsonScanner::Step JsonScanner::end_value() {
  state_ = open_.empty() ? State::kEnd : State::kAfterValue;
  return open_.empty() ? Step::kDone : Step::kMore;
}

JsonScanner::Step JsonScanner::string(char c, std::string& out) {
  if (c == '\\' || c == '"') {
    out += c;
  } else {
    append_escaped(out, c);
  }
  if (c == '\\') {
    return go(State::kEscape);
  }
  if (is_half_) {
    return Step::kFailed;
  }
  if (c != '"') {
    return Step::kMore;
  }
  return in_key_ ? go(State::kColon) : end_value();
}

JsonScanner::Step JsonScanner::escape(char c) {
  if (c == 'u') {
    hex_left_ = 4;
    code_unit_ = 0;
    return go(State::kHex);
  }
  const bool is_known =
      std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
  return is_known && !is_half_ ? go(State::kString) : Step::kFailed;
}

JsonScanner::Step JsonScanner::hex(char c) {
  const unsigned digit = hex_digit(c);
  if (digit > 15) {
    return Step::kFailed;
  }
  code_unit_ = code_unit_ * 16 + digit;
  if (--hex_left_ > 0) {
    return Step::kMore;
  }
  const bool is_first = code_unit_ >= 0xD800 && code_unit_ < 0xDC00;
  const bool is_second = code_unit_ >= 0xDC00 && code_unit_ < 0xE000;
  if (is_half_ != is_second) {
    return Step::kFailed;
  }
  is_half_ = is_first;
  return go(State::kString);
}

JsonScanner::Step JsonScanner::number(char c) {
  const bool digit = is_digit(c);
  const bool exponent = c == 'e' || c == 'E';
  switch (state_) {
    case State::kMinus:
      return !digit  ? Step::kFailed
          : c == '0' ? go(State::kZero)
                     : go(State::kDigits);
    case State::kPoint:
      return digit ? go(State::kFraction) : Step::kFailed;
    case State::kExponent:
      if (c == '+' || c == '-') {
        return go(State::kExponentSign);
      }
      [[fallthrough]];
    case State::kExponentSign:
      return digit ? go(State::kExponentDigits) : Step::kFailed;
    case State::kZero:
    case State::kDigits:
      if (c == '.') {
        return go(State::kPoint);
      }
      if (digit && state_ == State::kZero) {
        return Step::kFailed;
      }
      [[fallthrough]];
    case State::kFraction:
      if (exponent) {
        return go(State::kExponent);
      }
      [[fallthrough]];
    default:
      if (digit) {
        return Step::kMore;
      }
  }
  if (open_.empty()) {
    return Step::kPast;
  }
  state_ = State::kAfterValue;
  return is_space(c) ? Step::kMore : value(c);
}

} // namespace ingle
