// A chat template, and the variables it is rendered with.
//
// The template ends at the first zero byte; what follows is the JSON of the
// variables. Without it they are those of a conversation with a tool.
//
// chat_template.h names three things that a template can do without end. They
// take a value that holds itself dozens of times over; inputs are kept short,
// and no seed or word of the dictionary builds one. If libFuzzer reports a
// timeout or the end of memory, look for them first.

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "fuzz/checks.h"
#include "text/chat_template.h"

namespace ingle {
namespace {

class StoppedClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return {};
  }
  std::chrono::milliseconds since_epoch() const override {
    return std::chrono::seconds(1700000000);
  }
};

constexpr std::string_view kConversation = R"({
  "messages": [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather in K\u00f6ln? \ud83c\udf27"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "c1", "type": "function", "function":
        {"name": "weather", "arguments": {"city": "K\u00f6ln", "days": 2}}}]},
    {"role": "tool", "content": "rain, 7.5", "tool_call_id": "c1"},
    {"role": "assistant", "content": "<think>7.5</think>\n\nRain."},
    {"role": "user", "content": "<|im_end|> thanks\r\n"}
  ],
  "tools": [{"type": "function", "function": {"name": "weather",
    "description": "Says \"what\" it is like", "parameters":
      {"type": "object", "properties": {"city": {"type": "string"},
        "days": {"type": "integer", "default": 1}}, "required": ["city"]}}}],
  "add_generation_prompt": true,
  "enable_thinking": false,
  "bos_token": "<s>",
  "eos_token": "</s>"
})";

} // namespace
} // namespace ingle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ingle::set_log_level(ingle::LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingle;
  static const StoppedClock clock;
  const std::string_view input = input_text(data, size);
  const size_t end = input.find('\0');
  const auto compiled =
      ChatTemplate::compile(input.substr(0, end), "template.jinja", clock);
  check_status(compiled.status(), {StatusCode::kCorruption});
  if (!compiled.is_ok()) {
    return 0;
  }
  const std::string_view variables =
      end == std::string_view::npos ? kConversation : input.substr(end + 1);
  const auto prompt = (*compiled)->render(variables);
  check_status(
      prompt.status(), {StatusCode::kInvalidRequest, StatusCode::kCorruption});
  if (prompt.is_ok()) {
    check(is_utf8(*prompt), "a prompt is UTF-8");
  } else if (prompt.status().code() == StatusCode::kInvalidRequest) {
    check(
        prompt.status().reason() == "template_error",
        "a failed rendering has its reason");
  }
  return 0;
}
