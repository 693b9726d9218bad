// Generated text -> content, thoughts and tool calls, as it comes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/output_markup.h"
#include "text/tool_signature.h"

namespace ingle {

// A part of a tool call. The arguments of its parts together are a JSON object.
struct ToolCallPart {
  enum class End {
    kNone,
    kWhole, // its last part
    // It broke off: what was said of it is void, and its text comes as content.
    // Its arguments so far are no valid JSON.
    kVoid,
  };

  size_t index = 0; // of the call in the answer
  std::string name; // in the first part, and only there
  std::string arguments; // what this part adds
  End end = End::kNone;

  bool operator==(const ToolCallPart&) const = default;
};

struct RoutedText {
  std::string content;
  std::string reasoning;
  std::vector<ToolCallPart> calls;
};

// What is looked for in an answer.
struct OutputRouting {
  bool splits_thoughts = false; // else a thought is content, tags and all
  bool starts_in_thought = false; // the prompt ends in an open one
  // The tools that may be called; null: none, and their markup is content.
  std::shared_ptr<const ToolSignatures> tools;
  bool one_call = false; // the answer ends with its first call
};

// How the text is cut into tokens makes no difference to what the pieces come
// to. Which forms are looked for says the markup's family:
//
// - kTags: <tool_call> with JSON or <function=...> in it, <function=...>,
//   <function name=...>, whatever one of them the template shows: models were
//   tuned on several.
// - kLlama3: JSON at the very beginning, also behind <|python_tag|>.
// - kMistral: [TOOL_CALLS], with a list or with a name and [ARGS] behind it.
// - kGemma: by special tokens alone; <|channel> ... <channel|> is a thought but
//   for its first line, the channel's name.
// - kHarmony: channel analysis is a thought, a message to functions.NAME a
// call,
//   all else content.
//
// A call's text is kept back until its name and the beginning of its arguments
// were read; from there the arguments come as they are generated. Where the
// text turns out to be no call, or one of a tool that there is not, all of it
// comes as content. A call whose arguments are whole is one, though its closing
// marker is missing at the end. White space in front of a call, and behind the
// last one, is part of the markup. Thoughts stand in front of all text: <think>
// within an answer is part of it. Nothing else is trimmed.
//
// Cost:    linear in the text, but for a constant.
// Threads: one.
class OutputRouter {
 public:
  virtual ~OutputRouter() = default;

  // `text`: what the token `id` added, in UTF-8. Those of
  // OutputMarkup::special_tokens are to be decoded, other special tokens not.
  virtual RoutedText push(TokenId id, std::string_view text) = 0;
  // When no more text comes: what was held back.
  virtual RoutedText flush() = 0;

  // True iff the text is within a thought.
  virtual bool is_thinking() const = 0;
  // Whole calls so far.
  virtual size_t calls() const = 0;
  // True iff nothing of what follows counts.
  virtual bool is_done() const = 0;
};

std::unique_ptr<OutputRouter> make_output_router(
    const OutputMarkup& markup,
    OutputRouting routing);

// True iff the prompt leaves a thought open, so that the answer begins in it.
bool ends_in_open_thought(std::string_view prompt, const OutputMarkup& markup);

} // namespace ingle
