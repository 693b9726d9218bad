// What a model generates, as the routers of all families read it.
//
// The first byte says which family, whether there are tools, and how the rest
// is cut into tokens. The rest is the text; what in it spells one of the
// family's special tokens is that token.

#include <array>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "fuzz/checks.h"
#include "text/output_router.h"
#include "text/testing/routed.h"

namespace ingle {
namespace {

OutputMarkup markup_of(unsigned family) {
  constexpr std::array<std::string_view, 6> kSources = {
      "<tool_call> </think>",
      "<|tool_call> <|channel>",
      "[TOOL_CALLS] [ARGS] [THINK]",
      "[TOOL_CALLS] [",
      "<|start_header_id|> \"parameters\": ",
      "<|channel|> functions."};
  OutputMarkup markup =
      find_output_markup(kSources.at(family % kSources.size()), nullptr);
  TokenId next = 1;
  const auto add = [&](std::initializer_list<const char*> texts) {
    for (const char* const text : texts) {
      markup.special_tokens.emplace(text, next++);
    }
  };
  if (markup.family == OutputFamily::kGemma) {
    add({"<|tool_call>", "<tool_call|>", "<|\"|>", "<|channel>", "<channel|>"});
  } else if (markup.family == OutputFamily::kHarmony) {
    add({"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>"});
  } else if (markup.family == OutputFamily::kMistral) {
    add({"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"});
  }
  return markup;
}

// A call is its arguments in parentheses.
bool is_call(std::string_view call) {
  const size_t open = call.find('(');
  call.remove_prefix(open + 1);
  call.remove_suffix(1);
  try {
    return nlohmann::json::parse(call).is_object();
  } catch (const nlohmann::json::out_of_range&) {
    return true; // a number that no double holds
  } catch (const nlohmann::json::parse_error&) {
    return false;
  }
}

} // namespace
} // namespace ingle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingle;
  if (size == 0) {
    return 0;
  }
  const std::string_view text = input_text(data + 1, size - 1);
  if (!is_utf8(text)) {
    return -1; // decoders give nothing else
  }
  const OutputMarkup markup = markup_of(data[0] & 7U);
  OutputRouting routing;
  routing.splits_thoughts = (data[0] & 8U) == 0;
  routing.starts_in_thought = (data[0] & 16U) != 0;
  routing.one_call = (data[0] & 32U) != 0;
  if ((data[0] & 64U) == 0) {
    routing.tools = std::make_shared<const ToolSignatures>(ToolSignatures{
        {"f", {{"a", kJsonString}, {"b", kJsonNumber | kJsonNull}}},
        {"g", {}}});
  }
  const size_t length = 1 + (data[0] >> 7U) * 3U;
  const Routed whole = route(text, markup, routing);
  const Routed cut =
      route_tokens(cut_text(text, markup, {length}), markup, routing);
  check(whole == cut, "how a text is cut makes no difference");
  check(whole.broken.empty(), whole.broken);
  check(is_utf8(whole.content), "content is UTF-8");
  check(is_utf8(whole.reasoning), "a thought is UTF-8");
  for (const std::string& call : whole.calls) {
    check(is_call(call), "arguments are a JSON object");
  }
  for (const std::string& call : whole.voids) {
    check(!is_call(call), "those of a void call are not");
  }
  return 0;
}
