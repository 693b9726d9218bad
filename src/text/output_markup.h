// How a model writes tool calls and thoughts, so that a grammar can force them
// and a router takes them out of the text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/token.h"
#include "text/tokenizer.h"

namespace ingle {

// How the arguments of a call stand in it, keys and values.
enum class ArgumentSyntax {
  kJson, // {"key": "text", "other": [1, 2]}
  // "<parameter=key>\ntext\n</parameter>\n" for each, as often as there are
  // arguments: strings as they are, all else as JSON.
  kParameterTags,
  // <param name="key">text</param> for each: strings with XML's entities, or in
  // <![CDATA[...]]> where they have "<", "&" or a line break.
  kParamElements,
  // {key:<|"|>text<|"|>,other:[1,2]}: keys bare, strings between quote tokens
  // and never escaped, all else as JSON, keys of nested objects bare too.
  kGemma,
};

// What a model writes, in this order and nothing in between:
//
//   prefix  CALL [between CALL]...  suffix
//   CALL:   begin NAME after_name ARGUMENTS end
//
// This is the exact form that its template shows. What reads calls takes spaces
// around the parts, too.
struct ToolMarkup {
  std::string prefix;
  std::string begin;
  std::string after_name;
  ArgumentSyntax arguments = ArgumentSyntax::kJson;
  std::string end;
  std::string between;
  std::string suffix;
  bool allows_several = true; // false: one call, and the answer ends
};

// What stands around a thought. The exact forms again: a line break behind
// `open` may be missing.
struct ThoughtMarkup {
  std::string open;
  std::string close;
};

enum class OutputFamily {
  kTags, // <tool_call> and <function> tags, and what has no form of its own
  kLlama3, // bare JSON
  kMistral,
  kGemma,
  kHarmony, // gpt-oss: messages on channels
};

struct OutputMarkup {
  OutputFamily family = OutputFamily::kTags;
  ToolMarkup tools;
  std::optional<ThoughtMarkup> thought; // none: the model has no such form
  // The special tokens among all these texts and those of the argument syntax:
  // text -> id. The same characters in other tokens are no markup; those of a
  // marker that is not here are.
  std::map<std::string, TokenId, std::less<>> special_tokens;
};

// By what the template's source shows, first match. Tools:
//
// | shows                              | markup                               |
// |------------------------------------|--------------------------------------|
// | <|tool_call>                       | Gemma 4: <|tool_call>call:N{...}     |
// | <|channel|> and functions.         | gpt-oss: a message to functions.N    |
// | [TOOL_CALLS] and [ARGS]            | Mistral: [TOOL_CALLS]N[ARGS]{...}    |
// | [TOOL_CALLS]                       | Mistral: [TOOL_CALLS][{...}, ...]    |
// | <function= and <tool_call>         | Qwen: <tool_call><function=N>...     |
// | <function name=                    | MiniCPM: <function name="N">...      |
// | <|start_header_id|>, "parameters": | Llama 3: {"name", "parameters"}      |
// | none of these, or there is none    | Hermes: <tool_call>{...}</tool_call> |
//
// Thoughts:
//
// | <|tool_call> and <|channel>        | <|channel>thought\n ... <channel|>   |
// | <|channel|> and functions.         | <|channel|>analysis<|message|> ...   |
// | [THINK]                            | [THINK] ... [/THINK]                 |
// | </think>                           | <think> ... </think>                 |
// | none of these                      | none                                 |
//
// A marker that the tokenizer holds as a special token is that token. Where the
// tokenizer shows it in a text or doesn't have it, the marker is text.
// `tokenizer` may be null.
OutputMarkup find_output_markup(
    std::string_view template_source,
    const Tokenizer* tokenizer);

} // namespace ingle
