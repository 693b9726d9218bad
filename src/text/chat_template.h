// A model's chat template: messages -> the prompt text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace ingle {

// minijinja with Python-method compatibility behind a C boundary (text/rust),
// set up as Hugging Face's transformers renders: blocks trimmed, tojson as
// Python's json.dumps, raise_exception(), strftime_now(), loop controls.
// A rendering has a budget of work: one that loops or grows for ever is
// stopped, within about a second.
//
// Threads: any; const after compiling.
// Crash:   a template made to do harm can nest a value inside itself, again
//          and again. minijinja prints and frees such values recursively and
//          outside the budget: that can take for ever or exhaust the stack.
//          tojson does not. What a request sends nests at most 128 deep.
class ChatTemplate {
 public:
  // `origin` names the file in messages; `clock` is what strftime_now() reads.
  // Errors: kCorruption (syntax, with its line; or a statement that the engine
  // lacks, by name).
  static Result<std::shared_ptr<const ChatTemplate>> compile(
      std::string_view source,
      const std::string& origin,
      std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>());

  virtual ~ChatTemplate() = default;

  // `context_json` is an object: the variables of the template ("messages",
  // "tools", "add_generation_prompt", "bos_token", "eos_token", ...), in the
  // order in which templates should see the keys of objects.
  // Errors: kInvalidRequest with the template's own words (raise_exception) or
  // what could not be evaluated, reason "template_error".
  virtual Result<std::string> render(std::string_view context_json) const = 0;
};

} // namespace ingle
