#include "text/call_segment.h"

#include <utility>

#include "text/white_space.h"

namespace ingle {
namespace {

// Parts of one push are one.
void add_part(std::vector<ToolCallPart>& parts, ToolCallPart part) {
  const bool goes_on = !parts.empty() && parts.back().index == part.index &&
      parts.back().end == ToolCallPart::End::kNone;
  if (!goes_on) {
    parts.push_back(std::move(part));
    return;
  }
  parts.back().arguments += part.arguments;
  parts.back().end = part.end;
}

} // namespace

CallSegment::CallSegment(
    Form form,
    const ToolSignatures& tools,
    const SpecialBytes& bytes,
    size_t next_index)
    : form_(std::move(form)),
      tools_(tools),
      bytes_(bytes),
      next_index_(next_index) {}

CallSegment::Step CallSegment::push(char c, std::vector<ToolCallPart>& parts) {
  text_ += c;
  const Step step = advance(c, parts);
  if (step == Step::kFailed) {
    text_.pop_back();
    return fail(parts);
  }
  return step;
}

CallSegment::Step CallSegment::finish(std::vector<ToolCallPart>& parts) {
  if (state_ != State::kTrail) {
    return fail(parts);
  }
  tell(parts, ToolCallPart::End::kWhole);
  return Step::kClosed;
}

CallSegment::Step CallSegment::fail(std::vector<ToolCallPart>& parts) {
  if (is_announced_) {
    tell(parts, ToolCallPart::End::kVoid);
  }
  return Step::kFailed;
}

CallSegment::Step CallSegment::advance(
    char c,
    std::vector<ToolCallPart>& parts) {
  switch (state_) {
    case State::kLead:
      return lead(c, parts);
    case State::kCall:
      return call(c, parts);
    case State::kTrail:
      return trail(c, parts);
  }
  return Step::kFailed;
}

CallSegment::Step CallSegment::lead(char c, std::vector<ToolCallPart>& parts) {
  const bool is_inside = matched_ > 0 && matched_ < form_.lead.size();
  if (is_space(c) && !is_inside) {
    return Step::kMore;
  }
  if (matched_ < form_.lead.size()) {
    return c == form_.lead[matched_++] ? Step::kMore : Step::kFailed;
  }
  if (form_.calls == Calls::kMistral && c == '[') {
    become_list();
    return Step::kMore;
  }
  reader_ = make_reader(c);
  state_ = State::kCall;
  return reader_ == nullptr ? Step::kFailed : call(c, parts);
}

void CallSegment::become_list() {
  form_.calls = Calls::kJson;
  form_.trail = "]";
  form_.separators = ",";
  form_.several = true;
}

std::unique_ptr<CallReader> CallSegment::make_reader(char first) const {
  switch (form_.calls) {
    case Calls::kJson:
      return make_json_call_reader(tools_, /*name_first=*/false);
    case Calls::kBareJson:
      return make_json_call_reader(tools_, /*name_first=*/true);
    case Calls::kTags:
      return make_tag_call_reader(tools_);
    case Calls::kJsonOrTags:
      return first == '<' ? make_tag_call_reader(tools_)
                          : make_json_call_reader(tools_, false);
    case Calls::kMistral:
      return make_named_call_reader(
          tools_, bytes_.marker("[ARGS]"), bytes_.marker("[CALL_ID]"));
    case Calls::kNamed:
      return make_named_call_reader(tools_, "\n", "");
    case Calls::kGemma:
      return make_gemma_call_reader(tools_, bytes_.marker("<|\"|>"));
  }
  return nullptr;
}

// A special token that the form has no use for is the text that spells it.
bool CallSegment::has_use_for(char special) const {
  switch (form_.calls) {
    case Calls::kGemma:
      return std::string_view(&special, 1) == bytes_.marker("<|\"|>");
    case Calls::kMistral:
      return !reader_->call().has_begun;
    default:
      return false;
  }
}

CallReader::Step CallSegment::read(char c) {
  if (!SpecialBytes::is_special(c) || has_use_for(c)) {
    return reader_->push(c);
  }
  for (const char of_text : bytes_.spelled({&c, 1})) {
    if (reader_->push(of_text) != CallReader::Step::kMore) {
      return CallReader::Step::kFailed; // no call ends within a token
    }
  }
  return CallReader::Step::kMore;
}

CallSegment::Step CallSegment::call(char c, std::vector<ToolCallPart>& parts) {
  const CallReader::Step step = read(c);
  if (step == CallReader::Step::kFailed) {
    return Step::kFailed;
  }
  const CallText& call = reader_->call();
  if (call.tool != nullptr && call.has_begun && !call.arguments.empty()) {
    tell(parts, ToolCallPart::End::kNone);
  }
  if (step == CallReader::Step::kMore) {
    return Step::kMore;
  }
  state_ = State::kTrail;
  matched_ = 0;
  if (form_.trail.empty() && !form_.to_the_end) {
    tell(parts, ToolCallPart::End::kWhole);
    return Step::kClosed;
  }
  return Step::kMore;
}

CallSegment::Step CallSegment::trail(char c, std::vector<ToolCallPart>& parts) {
  const bool is_between = matched_ == 0 &&
      (is_space(c) || form_.separators.find(c) != std::string::npos);
  if (is_between) {
    return Step::kMore;
  }
  if (matched_ < form_.trail.size() && c == form_.trail[matched_]) {
    if (++matched_ < form_.trail.size()) {
      return Step::kMore;
    }
    tell(parts, ToolCallPart::End::kWhole);
    return Step::kClosed;
  }
  const char first = form_.lead.empty() ? '{' : form_.lead.front();
  if (matched_ > 0 || !form_.several || c != first) {
    return Step::kFailed;
  }
  tell(parts, ToolCallPart::End::kWhole);
  text_ = c;
  state_ = State::kLead;
  return lead(c, parts);
}

// Gives out what the reader has of the call. Behind its end there is none.
void CallSegment::tell(
    std::vector<ToolCallPart>& parts,
    ToolCallPart::End end) {
  CallText& call = reader_->call();
  ToolCallPart part;
  part.index = next_index_;
  part.name = is_announced_ ? std::string() : call.name;
  part.arguments = std::exchange(call.arguments, {});
  part.end = end;
  is_announced_ = end == ToolCallPart::End::kNone;
  if (end == ToolCallPart::End::kWhole) {
    part.arguments += '}';
    ++calls_;
    text_.clear();
  }
  if (end != ToolCallPart::End::kNone) {
    ++next_index_;
    reader_.reset();
  }
  add_part(parts, std::move(part));
}

} // namespace ingle
