// Reads one tool call character by character, in each of the forms that models
// write: from behind its opening marker to the end of its arguments.
//
// Special tokens are bytes here that no UTF-8 has; see SpecialBytes.
//
// Private to text/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/tool_signature.h"

namespace ingle {

// What was read of a call.
struct CallText {
  const ToolParameters* tool = nullptr; // null: the name was not read yet
  std::string name;
  // A JSON object without its closing brace, which only the reader of what
  // stands behind the call may add. Taken out by that as it comes.
  std::string arguments;
  bool has_begun = false; // true iff there were arguments to be read
};

// Threads: one.
class CallReader {
 public:
  enum class Step {
    kMore,
    kDone, // the call ends with this character
    kFailed, // this is no call, or one of a tool that there is not
  };

  virtual ~CallReader() = default;
  virtual Step push(char c) = 0;

  CallText& call() {
    return call_;
  }

 protected:
  explicit CallReader(const ToolSignatures& tools) : tools_(tools) {}
  // False: there is no such tool.
  bool set_name(std::string_view name);

  const ToolSignatures& tools_;
  CallText call_;
};

// {"name": NAME, "arguments": {...}}, in any order, with "parameters" for
// "arguments" and with other keys, which are dropped. No arguments: {}.
// `name_first`: a JSON object that begins with something else is no call.
std::unique_ptr<CallReader> make_json_call_reader(
    const ToolSignatures& tools,
    bool name_first);

// NAME`after_name`{...} in JSON. What stands behind `aside` in the name is
// dropped (empty: nothing is).
std::unique_ptr<CallReader> make_named_call_reader(
    const ToolSignatures& tools,
    std::string after_name,
    std::string aside);

// NAME{key:value,...} in Gemma's syntax, where `quote` delimits strings.
std::unique_ptr<CallReader> make_gemma_call_reader(
    const ToolSignatures& tools,
    std::string quote);

// <function=N><parameter=K>V</parameter></function>, or <function name="N">
// with <param name="K">V</param>. Values are coerced to the types that the tool
// has for them: one that is a string stays as it is; what else is JSON (or
// Python's True, False and None) is that; all else is a string.
std::unique_ptr<CallReader> make_tag_call_reader(const ToolSignatures& tools);

} // namespace ingle
