#include "api/tool_grammar.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/answer_format.h"
#include "api/call_arguments.h"
#include "api/error_body.h"
#include "api/json_reader.h"
#include "api/prompt.h"
#include "text/lark_text.h"

namespace ingle {
namespace {

struct Function {
  std::string name;
  Json parameters;
  bool is_strict = false;
  std::string path; // of its parameters
};

Result<std::vector<Function>> read_functions(const std::string& definitions) {
  std::vector<Function> functions;
  if (definitions.empty()) {
    return functions;
  }
  INGLE_ASSIGN_OR_RETURN(const Json tools, parse_json(definitions));
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string path = indexed_path("tools", i) + ".function";
    INGLE_ASSIGN_OR_RETURN(
        const JsonObject fields,
        JsonObject::from(tools[i].at("function"), path));
    INGLE_ASSIGN_OR_RETURN(const auto name, fields.get_string("name"));
    INGLE_ASSIGN_OR_RETURN(const auto strict, fields.get_bool("strict"));
    const Json* const parameters = fields.find("parameters");
    functions.push_back(
        {name.value_or(""),
         parameters == nullptr ? Json::object() : *parameters,
         strict.value_or(false),
         fields.path_of("parameters")});
  }
  return functions;
}

// Writes the grammar of calls.
class CallGrammar {
 public:
  explicit CallGrammar(const OutputMarkup& markup)
      : markup_(markup), arguments_(markup) {}

  // The functions to choose among. With `anything_goes` the arguments of those
  // that are not strict are any object.
  void add(const std::vector<Function>& functions, bool anything_goes) {
    for (const Function& function : functions) {
      const bool is_any = anything_goes && !function.is_strict;
      calls_.push_back(
          {function.name,
           arguments_.add(
               is_any ? Json::object() : function.parameters,
               function.path,
               function.is_strict)});
    }
  }

  // Nothing but calls.
  GrammarSpec forced(bool several) const {
    const std::string prefix = lark_literal(markup_.tools.prefix, markup_);
    return spec(
        "start: " + prefix + " call" + rest(several) + "call: " + any(0));
  }

  // Text, which calls may follow.
  GrammarSpec free(bool several) const {
    const ToolMarkup& tools = markup_.tools;
    const std::string opening = tools.prefix + tools.begin;
    const std::string marker = first_marker(opening);
    const LarkText until = lark_until(marker, markup_, "lead");
    // What is left of the opening of the first call, behind the marker.
    const bool in_prefix = marker.size() < tools.prefix.size();
    const std::string left = in_prefix
        ? lark_literal(tools.prefix.substr(marker.size()), markup_)
        : std::string();
    const size_t of_begin = in_prefix ? 0 : marker.size() - tools.prefix.size();
    return spec(
        "start: /(?s:.*)/ | " + until.reference + " " + left + " first" +
        rest(several) + "first: " + any(of_begin) + "call: " + any(0) +
        until.rules);
  }

  const CallArguments& arguments() const {
    return arguments_;
  }

 private:
  struct Call {
    std::string name;
    std::string arguments;
  };

  // The text by which a call is recognised: a special token, or the first line.
  std::string first_marker(const std::string& opening) const {
    for (const auto& [name, id] : markup_.special_tokens) {
      if (opening.starts_with(name)) {
        return name;
      }
    }
    return opening.substr(0, opening.find('\n'));
  }

  // Behind the first call.
  std::string rest(bool several) const {
    const ToolMarkup& tools = markup_.tools;
    std::string more;
    if (several && tools.allows_several) {
      more = " (" + lark_literal(tools.between, markup_) + " call)*";
    }
    return more + " " + lark_literal(tools.suffix, markup_) + "\n";
  }

  // One call, without the first bytes of its opening.
  std::string any(size_t without) const {
    const ToolMarkup& tools = markup_.tools;
    std::string all;
    for (const Call& call : calls_) {
      const std::string head =
          tools.begin.substr(without) + call.name + tools.after_name;
      all += (all.empty() ? "" : " | ") + lark_literal(head, markup_) + " " +
          call.arguments + " " + lark_literal(tools.end, markup_);
    }
    return all + "\n";
  }

  GrammarSpec spec(const std::string& rules) const {
    return {
        GrammarSpec::Kind::kLark,
        rules + arguments_.rules(),
        arguments_.parts()};
  }

  const OutputMarkup& markup_;
  CallArguments arguments_;
  std::vector<Call> calls_;
};

// Those that may be called.
Result<std::vector<Function>> choose_functions(
    std::vector<Function> functions,
    const ToolChoice& choice) {
  if (choice.is_required && functions.empty()) {
    return invalid_field(
        "tool_choice", "expected tools, of which there is none");
  }
  if (choice.name.empty()) {
    return functions;
  }
  std::erase_if(functions, [&](const Function& function) {
    return function.name != choice.name;
  });
  if (functions.empty()) {
    return invalid_field(
        "tool_choice.function.name",
        "expected the name of one of the tools, got " +
            quote_text(choice.name));
  }
  return functions;
}

Status too_much() {
  return invalid_field(
             "tools",
             "expected schemas of at most " +
                 std::to_string(kMaxGrammarBytes / 1024) +
                 " KiB in all, written out, and 64 levels, where calls are "
                 "forced or strict: make them smaller")
      .with_reason("invalid_grammar");
}

} // namespace

Result<std::shared_ptr<const Grammar>> compile_tool_choice(
    const ChatTools& tools,
    std::string_view prompt,
    bool may_think,
    const ServedModel& model) {
  const ToolChoice& choice = tools.choice;
  INGLE_ASSIGN_OR_RETURN(auto all, read_functions(tools.definitions));
  INGLE_ASSIGN_OR_RETURN(
      const auto functions, choose_functions(std::move(all), choice));
  const bool one_is_strict =
      std::any_of(functions.begin(), functions.end(), [](const Function& f) {
        return f.is_strict;
      });
  if (!choice.is_required && !one_is_strict) {
    return std::shared_ptr<const Grammar>();
  }
  if (model.grammars == nullptr) {
    return no_tokenizer("tool_choice", model);
  }
  if (tools.definitions.size() > kMaxGrammarBytes) {
    return too_much();
  }
  CallGrammar calls(model.markup);
  calls.add(functions, /*anything_goes=*/!choice.is_required);
  const GrammarSpec spec = choice.is_required
      ? calls.forced(choice.allows_several)
      : calls.free(choice.allows_several);
  if (calls.arguments().is_too_much()) {
    return too_much();
  }
  auto grammar = model.grammars->compile(
      behind_thought(spec, prompt, may_think, model.markup));
  if (grammar.status().code() == StatusCode::kInvalidRequest) {
    const std::string path =
        calls.arguments().path_of(grammar.status().where());
    return invalid_field(
               path.empty() ? "tools" : path, grammar.status().message())
        .with_reason("invalid_grammar");
  }
  return grammar;
}

} // namespace ingle
