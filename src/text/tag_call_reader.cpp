// Calls as tags: Qwen's <function=...> and MiniCPM's <function name="...">.
#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "text/call_reader.h"
#include "text/json_scanner.h"
#include "text/white_space.h"

namespace ingle {
namespace {

constexpr size_t kMaxTag = 512; // bytes
constexpr std::string_view kCdataOpen = "<![CDATA[";
constexpr std::string_view kCdataClose = "]]>";

// <function=N>, <function name="N">: what a tag is of, and which.
struct Tag {
  std::string_view element;
  std::string_view name;
  bool is_attribute = false; // name="N"
};

std::optional<Tag> parse_tag(std::string_view text) {
  Tag tag;
  const size_t end = text.find_first_of("= ");
  tag.element = text.substr(0, end);
  if (end == std::string_view::npos) {
    return tag;
  }
  tag.name = trimmed(text.substr(end + 1));
  if (text[end] == ' ') {
    constexpr std::string_view kName = "name=";
    if (!tag.name.starts_with(kName)) {
      return std::nullopt;
    }
    tag.is_attribute = true;
    tag.name = trimmed(tag.name.substr(kName.size()));
  }
  const bool is_quoted = tag.name.size() >= 2 &&
      (tag.name.front() == '"' || tag.name.front() == '\'') &&
      tag.name.back() == tag.name.front();
  if (is_quoted) {
    tag.name = tag.name.substr(1, tag.name.size() - 2);
  }
  return tag.name.empty() ? std::nullopt : std::optional(tag);
}

void append_utf8(std::string& out, uint32_t code) {
  const auto byte = [&](uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

// "#10", "#xA" -> the character; nothing for what is none.
std::optional<uint32_t> numeric_entity(std::string_view entity) {
  if (!entity.starts_with('#')) {
    return std::nullopt;
  }
  entity.remove_prefix(1);
  const bool is_hex = entity.starts_with('x') || entity.starts_with('X');
  if (is_hex) {
    entity.remove_prefix(1);
  }
  const uint32_t base = is_hex ? 16 : 10;
  uint32_t code = 0;
  for (const char c : entity) {
    const uint32_t digit = c >= '0' && c <= '9' ? c - '0'
        : c >= 'a' && c <= 'f'                  ? c - 'a' + 10
        : c >= 'A' && c <= 'F'                  ? c - 'A' + 10
                                                : 99;
    if (digit >= base || code > 0x10FFFF) {
      return std::nullopt;
    }
    code = code * base + digit;
  }
  const bool is_character = !entity.empty() && code != 0 && code <= 0x10FFFF &&
      (code < 0xD800 || code > 0xDFFF);
  return is_character ? std::optional(code) : std::nullopt;
}

// At an "&": appends what the entity stands for and gives its length. One that
// is not known is the text that it is.
size_t append_entity(std::string& out, std::string_view text) {
  constexpr size_t kLongest = 12; // bytes
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
      {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};
  const size_t end = text.substr(0, kLongest).find(';');
  if (end != std::string_view::npos) {
    const std::string_view entity = text.substr(1, end - 1);
    for (const auto& [name, character] : kEntities) {
      if (entity == name) {
        out += character;
        return end + 1;
      }
    }
    if (const auto code = numeric_entity(entity)) {
      append_utf8(out, *code);
      return end + 1;
    }
  }
  out += '&';
  return 1;
}

// Text of an element: entities and CDATA sections undone.
std::string element_text(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const size_t close = rest.starts_with(kCdataOpen) ? rest.find(kCdataClose)
                                                      : std::string_view::npos;
    if (close != std::string_view::npos) {
      out += rest.substr(kCdataOpen.size(), close - kCdataOpen.size());
      at += close + kCdataClose.size();
    } else if (rest.front() == '&') {
      at += append_entity(out, rest);
    } else {
      out += rest.front();
      ++at;
    }
  }
  return out;
}

// The type of a whole JSON value, or nothing. `json` gets it.
std::optional<JsonTypes> json_type(std::string_view text, std::string& json) {
  if (text == "True" || text == "False" || text == "None") {
    json = text == "True" ? "true" : text == "False" ? "false" : "null";
    return text == "None" ? kJsonNull : kJsonBool;
  }
  JsonScanner scanner;
  auto step = JsonScanner::Step::kMore;
  size_t at = 0;
  while (at < text.size() && step == JsonScanner::Step::kMore) {
    step = scanner.push(text[at++], json);
  }
  const bool is_whole = at == text.size() &&
      (step == JsonScanner::Step::kDone ||
       (step == JsonScanner::Step::kMore && scanner.is_whole()));
  if (!is_whole) {
    return std::nullopt;
  }
  switch (text.front()) {
    case '"':
      return kJsonString;
    case '{':
      return kJsonObject;
    case '[':
      return kJsonArray;
    case 't':
    case 'f':
      return kJsonBool;
    case 'n':
      return kJsonNull;
    default:
      return kJsonNumber;
  }
}

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    append_escaped(json, c);
  }
  return json + '"';
}

std::string coerced(std::string_view text, JsonTypes types) {
  if (types != kJsonString) {
    std::string json;
    const std::string_view value = trimmed(text);
    const auto type = value.empty() ? std::nullopt : json_type(value, json);
    const bool is_meant = type &&
        ((types & kJsonString) == 0 ||
         (*type != kJsonString && (types & *type) != 0));
    if (is_meant) {
      return json;
    }
  }
  return json_string(text);
}

class TagCallReader final : public CallReader {
 public:
  explicit TagCallReader(const ToolSignatures& tools) : CallReader(tools) {}

  Step push(char c) override {
    switch (state_) {
      case State::kBetween:
        if (is_space(c)) {
          return Step::kMore;
        }
        text_.clear();
        return c == '<' ? go(State::kTag) : Step::kFailed;
      case State::kTag:
        if (c == '>') {
          return tag();
        }
        text_ += c;
        return text_.size() > kMaxTag ? Step::kFailed : Step::kMore;
      case State::kValue:
        return value(c);
    }
    return Step::kFailed;
  }

 private:
  enum class State { kBetween, kTag, kValue };

  Step go(State next) {
    state_ = next;
    return Step::kMore;
  }

  Step tag() {
    const std::optional<Tag> tag = parse_tag(text_);
    if (!tag) {
      return Step::kFailed;
    }
    if (call_.tool == nullptr) {
      return tag->element == "function" && set_name(tag->name)
          ? go(State::kBetween)
          : Step::kFailed;
    }
    if (tag->element == "/function") {
      begin_arguments();
      return Step::kDone;
    }
    const bool is_parameter =
        tag->element == "parameter" || tag->element == "param";
    if (!is_parameter || !keys_.insert(std::string(tag->name)).second) {
      return Step::kFailed;
    }
    const bool is_first = !call_.has_begun;
    begin_arguments();
    call_.arguments += is_first ? "" : ", ";
    call_.arguments += json_string(tag->name) + ": ";
    const auto types = call_.tool->find(tag->name);
    types_ = types == call_.tool->end() ? kJsonAny : types->second;
    is_element_ = tag->is_attribute;
    close_ = "</" + std::string(tag->element) + ">";
    text_.clear();
    return go(State::kValue);
  }

  void begin_arguments() {
    if (!call_.has_begun) {
      call_.has_begun = true;
      call_.arguments = "{";
    }
  }

  bool is_in_cdata() const {
    const size_t open = text_.rfind(kCdataOpen);
    return is_element_ && open != std::string::npos &&
        text_.find(kCdataClose, open) == std::string::npos;
  }

  Step value(char c) {
    text_ += c;
    if (c != '>' || !text_.ends_with(close_) || is_in_cdata()) {
      return Step::kMore;
    }
    text_.resize(text_.size() - close_.size());
    call_.arguments += coerced(
        is_element_ ? element_text(text_) : without_line_breaks(), types_);
    return go(State::kBetween);
  }

  // Those that the tags stand on lines of their own with.
  std::string without_line_breaks() const {
    std::string_view text = text_;
    if (text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    if (text.ends_with('\n')) {
      text.remove_suffix(1);
    }
    return std::string(text);
  }

  State state_ = State::kBetween;
  std::string text_; // of a tag or a value
  std::string close_;
  JsonTypes types_ = kJsonAny;
  bool is_element_ = false; // its text has entities and CDATA
  std::set<std::string, std::less<>> keys_;
};

} // namespace

std::unique_ptr<CallReader> make_tag_call_reader(const ToolSignatures& tools) {
  return std::make_unique<TagCallReader>(tools);
}

} // namespace ingle
