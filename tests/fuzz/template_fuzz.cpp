// A chat template, and the variables it is rendered with.
//
// The template ends at the first zero byte; what follows is the JSON of the
// variables. Without it they are those of a conversation with a tool; with it a
// template that is always the same is rendered with them too.
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

// What models' templates are made of.
constexpr std::string_view kSoundTemplate = R"(
{%- macro named(message) -%}{{ message.role | upper }}: {%- endmacro -%}
{%- set seen = namespace(count=0) -%}
{%- if tools %}{{ tools | tojson }}{{ tools | tojson(indent=2) }}{% endif -%}
{%- for message in messages if message.role != 'system' -%}
{%- set seen.count = seen.count + 1 -%}
{{ named(message) }}{{ message['content'] | trim }}
{%- if message.content is string and '</think>' in message.content -%}
{{ message.content.split('</think>')[-1].lstrip('\n') }}
{%- endif -%}
{%- for call in message.tool_calls or [] -%}
{{ call.function.name }}{% for key, value in call.function.arguments | items -%}
{{ key }}={{ value if value is string else value | tojson }}
{%- endfor -%}
{%- endfor -%}
{{ eos_token }}{%- endfor -%}
{{ seen.count }}{{ strftime_now('%d %b %Y') }}
{%- if add_generation_prompt %}{{ bos_token }}{% endif -%}
)";

// With a sound template no failure of the library is excused.
void render_sound_template(std::string_view variables, const Clock& clock) {
  static const auto compiled =
      ChatTemplate::compile(kSoundTemplate, "sound.jinja", clock);
  check(compiled.is_ok(), "a sound template compiles");
  check_status(
      (*compiled)->render(variables).status(), {StatusCode::kInvalidRequest});
}

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
  const bool has_variables = end != std::string_view::npos;
  const std::string_view variables =
      has_variables ? input.substr(end + 1) : kConversation;
  if (has_variables) {
    render_sound_template(variables, clock);
  }
  const auto compiled =
      ChatTemplate::compile(input.substr(0, end), "template.jinja", clock);
  check_status(compiled.status(), {StatusCode::kCorruption});
  if (!compiled.is_ok()) {
    return 0;
  }
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
