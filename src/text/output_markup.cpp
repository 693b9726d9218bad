#include "text/output_markup.h"

#include <array>
#include <optional>
#include <utility>

namespace ingle {
namespace {

ToolMarkup hermes() {
  ToolMarkup markup;
  markup.begin = "<tool_call>\n{\"name\": \"";
  markup.after_name = "\", \"arguments\": ";
  markup.end = "}\n</tool_call>";
  markup.between = "\n";
  return markup;
}

ToolMarkup gemma() {
  ToolMarkup markup;
  markup.begin = "<|tool_call>call:";
  markup.arguments = ArgumentSyntax::kGemma;
  markup.end = "<tool_call|>";
  return markup;
}

// The prompt ends in "<|start|>assistant".
ToolMarkup harmony() {
  ToolMarkup markup;
  markup.begin = " to=functions.";
  markup.after_name = "<|channel|>commentary json<|message|>";
  markup.end = "<|call|>";
  markup.allows_several = false;
  return markup;
}

ToolMarkup mistral_names() {
  ToolMarkup markup;
  markup.begin = "[TOOL_CALLS]";
  markup.after_name = "[ARGS]";
  return markup;
}

ToolMarkup mistral_list() {
  ToolMarkup markup;
  markup.prefix = "[TOOL_CALLS][";
  markup.begin = "{\"name\": \"";
  markup.after_name = "\", \"arguments\": ";
  markup.end = "}";
  markup.between = ", ";
  markup.suffix = "]";
  return markup;
}

ToolMarkup function_tags() {
  ToolMarkup markup;
  markup.begin = "<tool_call>\n<function=";
  markup.after_name = ">\n";
  markup.arguments = ArgumentSyntax::kParameterTags;
  markup.end = "</function>\n</tool_call>";
  markup.between = "\n";
  return markup;
}

ToolMarkup function_elements() {
  ToolMarkup markup;
  markup.begin = "<function name=\"";
  markup.after_name = "\">";
  markup.arguments = ArgumentSyntax::kParamElements;
  markup.end = "</function>";
  markup.between = "\n";
  return markup;
}

ToolMarkup llama3() {
  ToolMarkup markup;
  markup.begin = "{\"name\": \"";
  markup.after_name = "\", \"parameters\": ";
  markup.end = "}";
  markup.allows_several = false;
  return markup;
}

class Source {
 public:
  explicit Source(std::string_view text) : text_(text) {}

  bool shows(std::string_view marker) const {
    return text_.find(marker) != std::string_view::npos;
  }
  // True iff answers may have it: tags of Llama 3 and gpt-oss are in few
  // templates.
  bool may_bring(std::string_view marker) const {
    return shows(marker) || (marker == "<|constrain|>" && is_harmony()) ||
        (marker == "<|python_tag|>" && shows("<|start_header_id|>"));
  }
  bool is_gemma() const {
    return shows("<|tool_call>");
  }
  bool is_harmony() const {
    return shows("<|channel|>") && shows("functions.");
  }

 private:
  std::string_view text_;
};

OutputFamily family_of(const Source& source) {
  if (source.is_gemma()) {
    return OutputFamily::kGemma;
  }
  if (source.is_harmony()) {
    return OutputFamily::kHarmony;
  }
  if (source.shows("[TOOL_CALLS]")) {
    return OutputFamily::kMistral;
  }
  const bool is_llama3 = source.shows("<|start_header_id|>") &&
      source.shows("\"parameters\": ") && !source.shows("<tool_call>");
  return is_llama3 ? OutputFamily::kLlama3 : OutputFamily::kTags;
}

ToolMarkup tools_of(OutputFamily family, const Source& source) {
  switch (family) {
    case OutputFamily::kGemma:
      return gemma();
    case OutputFamily::kHarmony:
      return harmony();
    case OutputFamily::kMistral:
      return source.shows("[ARGS]") ? mistral_names() : mistral_list();
    case OutputFamily::kLlama3:
      return llama3();
    case OutputFamily::kTags:
      break;
  }
  if (source.shows("<function=") && source.shows("<tool_call>")) {
    return function_tags();
  }
  if (source.shows("<function name=")) {
    return function_elements();
  }
  return hermes();
}

std::optional<ThoughtMarkup> thought_of(const Source& source) {
  if (source.is_gemma() && source.shows("<|channel>")) {
    return ThoughtMarkup{"<|channel>thought\n", "<channel|>"};
  }
  if (source.is_harmony()) {
    return ThoughtMarkup{"<|channel|>analysis<|message|>", "<|end|>"};
  }
  if (source.shows("[THINK]")) {
    return ThoughtMarkup{"[THINK]", "[/THINK]"};
  }
  if (source.shows("</think>")) {
    return ThoughtMarkup{"<think>\n", "\n</think>\n\n"};
  }
  return std::nullopt;
}

// What may be a special token.
constexpr std::array<std::string_view, 21> kMarkers = {
    "<tool_call>", "</tool_call>",   "<|tool_call>", "<tool_call|>",
    "<|\"|>",      "<|channel>",     "<channel|>",   "<|start|>",
    "<|channel|>", "<|constrain|>",  "<|message|>",  "<|call|>",
    "<|end|>",     "<|python_tag|>", "[TOOL_CALLS]", "[ARGS]",
    "[CALL_ID]",   "[THINK]",        "[/THINK]",     "<think>",
    "</think>"};

// The token that is this text and that decoding leaves out.
std::optional<TokenId> special_token(
    std::string_view text,
    const Tokenizer& tokenizer) {
  const std::optional<TokenId> id = tokenizer.token_to_id(text);
  if (!id) {
    return std::nullopt;
  }
  const std::array<TokenId, 1> only = {*id};
  const auto visible = tokenizer.decode(only, /*skip_special_tokens=*/true);
  return visible.is_ok() && visible->empty() ? id : std::nullopt;
}

} // namespace

OutputMarkup find_output_markup(
    std::string_view template_source,
    const Tokenizer* tokenizer) {
  const Source source(template_source);
  OutputMarkup markup;
  markup.family = family_of(source);
  markup.tools = tools_of(markup.family, source);
  markup.thought = thought_of(source);
  for (const std::string_view marker : kMarkers) {
    if (tokenizer == nullptr || !source.may_bring(marker)) {
      continue;
    }
    if (const auto id = special_token(marker, *tokenizer)) {
      markup.special_tokens.emplace(marker, *id);
    }
  }
  return markup;
}

} // namespace ingle
