// A stretch of text that holds tool calls, from behind the marker that opens it
// to the one that closes it.
//
// Private to text/.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/call_reader.h"
#include "text/output_router.h"
#include "text/special_bytes.h"

namespace ingle {

// Threads: one.
class CallSegment {
 public:
  enum class Calls {
    kJson,
    kBareJson, // with the name first
    kTags,
    kJsonOrTags,
    kMistral, // a list in JSON, or a name with arguments behind it
    kNamed, // the name on a line, then the arguments
    kGemma,
  };
  struct Form {
    Calls calls = Calls::kJson;
    std::string lead; // in front of each call
    std::string trail; // behind the last one
    std::string separators; // characters that may stand between calls
    bool several = false;
    // Nothing but another call may follow; else and without a trail the segment
    // closes with its call.
    bool to_the_end = false;
  };
  enum class Step {
    kMore,
    kClosed, // with this character
    kFailed, // in front of this character: text() was none of a call
  };

  // `next_index` is the next call's. All have to outlive the segment.
  CallSegment(
      Form form,
      const ToolSignatures& tools,
      const SpecialBytes& bytes,
      size_t next_index);

  // Adds to `parts`.
  Step push(char c, std::vector<ToolCallPart>& parts);
  // When no more text comes. kClosed or kFailed.
  Step finish(std::vector<ToolCallPart>& parts);

  // What was read since the last whole call.
  const std::string& text() const {
    return text_;
  }
  size_t calls() const {
    return calls_;
  }
  // Those of void calls are not used again.
  size_t next_index() const {
    return next_index_;
  }

 private:
  enum class State { kLead, kCall, kTrail };

  Step advance(char c, std::vector<ToolCallPart>& parts);
  Step lead(char c, std::vector<ToolCallPart>& parts);
  Step call(char c, std::vector<ToolCallPart>& parts);
  bool has_use_for(char special) const;
  CallReader::Step read(char c);
  Step trail(char c, std::vector<ToolCallPart>& parts);
  Step fail(std::vector<ToolCallPart>& parts);
  void become_list();
  std::unique_ptr<CallReader> make_reader(char first) const;
  void tell(std::vector<ToolCallPart>& parts, ToolCallPart::End end);

  Form form_;
  const ToolSignatures& tools_;
  const SpecialBytes& bytes_;
  size_t next_index_;
  State state_ = State::kLead;
  size_t matched_ = 0; // bytes of the lead or the trail
  std::unique_ptr<CallReader> reader_; // null between calls
  bool is_announced_ = false; // true iff a part of the call was told
  size_t calls_ = 0;
  std::string text_;
};

} // namespace ingle
