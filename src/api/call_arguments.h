// The arguments of a tool call as parts of a Lark grammar.
//
// Private to api/: includes the JSON library.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/json_reader.h"
#include "text/grammar.h"
#include "text/output_markup.h"

namespace ingle {

// Adds up the rules and parts of one grammar.
class CallArguments {
 public:
  explicit CallArguments(const OutputMarkup& markup) : markup_(markup) {}

  // What stands for arguments that follow `schema`, in the markup's syntax.
  // `path`: where the schema stands in the request. Not `is_strict`: what can't
  // be expressed of it is left out.
  std::string add(const Json& schema, const std::string& path, bool is_strict);
  // True iff the schemas were too large or nested too deep, and what add() gave
  // is not all of them. They come from outside.
  bool is_too_much() const {
    return is_too_much_;
  }

  const std::string& rules() const {
    return rules_;
  }
  const std::vector<GrammarSpec::Part>& parts() const {
    return parts_;
  }
  // Where the part's schema stands; empty: there is no such part.
  std::string path_of(std::string_view part) const;

 private:
  std::string add_part(const Json& schema);
  std::string add_rule(const std::string& body);
  std::string add_text_until(std::string_view end);
  std::string parameters(std::string_view quote_end, bool is_xml);
  std::string gemma_value(const Json& schema);
  std::string gemma_value_within(const Json& schema);
  std::string gemma_object(const Json& schema);
  std::string gemma_array(const Json& schema);
  std::string gemma_reference(const std::string& reference);
  std::string gemma_any();
  std::string gemma_string(std::string_view text);
  const Json* resolve(const std::string& reference) const;

  const OutputMarkup& markup_;
  std::string rules_;
  std::vector<GrammarSpec::Part> parts_;
  std::map<std::string, std::string, std::less<>> paths_; // part -> path
  size_t bytes_ = 0; // of parts
  bool is_too_much_ = false;
  int last_ = 0; // rule or part
  // Of the arguments that are being added.
  const Json* root_ = nullptr;
  std::string path_;
  bool is_strict_ = false;
  std::map<std::string, std::string> references_; // $ref -> rule
  int depth_ = 0; // of values in values
};

} // namespace ingle
