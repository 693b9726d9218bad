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
// tests/text_truth compares the two. What is not supported is an error that
// shows its place in the template. Where transformers fails because None has no
// items, as `tools` is without tools, this goes on as with an empty list.
//
// A rendering has a budget of work that grows with the size of the variables,
// and runs on a thread of its own, whose stack holds whatever the budget lets a
// template nest: 768 MiB of addresses, up to 12 GiB from 1 MiB of variables on
// (less, and the budget with it, where the system doesn't grant that). It is
// enough for 10,000 messages in templates whose work is linear in them. One
// that loops, prints or grows for ever is stopped: within about a second where
// the variables are few, and within seconds and 2 GiB whatever their size.
//
// Threads: any; const after compiling. A rendering waits for its thread, which
//          costs about 0.1 ms.
// Crash:   a template made to do harm can nest a value inside itself many times
//          over and turn it into a string with `~`, or compare two such values,
//          or grow a list with `+` again and again. minijinja does these in one
//          step, outside the budget: they can take minutes, or memory without
//          end. Printing and tojson do not. Values nested by the million fill
//          the stack of a long conversation, which is memory then.
class ChatTemplate {
 public:
  // `origin` names the file in messages. `clock` is what strftime_now() reads;
  // it must outlive the template.
  // Errors: kCorruption (syntax, with its line; or a statement that the engine
  // lacks, by name).
  static Result<std::shared_ptr<const ChatTemplate>> compile(
      std::string_view source,
      const std::string& origin,
      const Clock& clock);

  virtual ~ChatTemplate() = default;

  // `context_json` is an object: the variables of the template ("messages",
  // "tools", "add_generation_prompt", "bos_token", "eos_token", ...), in the
  // order in which templates should see the keys of objects.
  // Errors: kInvalidRequest with the template's own words (raise_exception) or
  // what could not be evaluated, reason "template_error"; kCorruption where
  // the engine cannot go on with a template that it took.
  virtual Result<std::string> render(std::string_view context_json) const = 0;
};

} // namespace ingle
