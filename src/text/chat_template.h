// A model's chat template: messages -> the prompt text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ingle {

// minijinja with Python-method compatibility behind a C boundary (text/rust).
//
// Threads: any; const after compiling.
class ChatTemplate {
 public:
  // `origin` names the file in messages. Errors: kCorruption (syntax, with its
  // line; or a feature that the engine lacks, by name).
  static Result<std::shared_ptr<const ChatTemplate>> compile(
      std::string_view source,
      const std::string& origin);

  virtual ~ChatTemplate() = default;

  // `context_json` is an object: the variables of the template ("messages",
  // "tools", "add_generation_prompt", "bos_token", "eos_token", ...), in the
  // order in which templates should see the keys of objects.
  // Errors: kInvalidRequest with the template's own words (raise_exception) or
  // what could not be evaluated, reason "template_error".
  virtual Result<std::string> render(std::string_view context_json) const = 0;
};

} // namespace ingle
