#include "api/text_request.h"

#include <utility>
#include <vector>

#include "api/chat_request.h"
#include "api/json_reader.h"
#include "api/prompt.h"
#include "base/utf8.h"

namespace ingle {
namespace {

// Whether tokens in the text are taken for special ones is not ours to choose:
// the tokenizer always does.
Status refuse_missing_features(const JsonObject& body) {
  INGLE_ASSIGN_OR_RETURN(const auto parse, body.get_bool("parse_special"));
  return parse.value_or(true)
      ? Status()
      : not_supported_yet("parse_special", "a value other than true");
}

Json piece_of(const std::string& bytes) {
  if (is_utf8(bytes)) {
    return bytes;
  }
  Json list = Json::array();
  for (const char c : bytes) {
    list.push_back(static_cast<unsigned char>(c));
  }
  return list;
}

Result<Json> with_pieces(
    const std::vector<TokenId>& ids,
    const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const TokenId id : ids) {
    INGLE_ASSIGN_OR_RETURN(const std::string bytes, tokenizer.token_bytes(id));
    Json entry;
    entry["id"] = id;
    entry["piece"] = piece_of(bytes);
    list.push_back(std::move(entry));
  }
  return list;
}

} // namespace

Result<std::string> tokenize(std::string_view body, const ServedModel& model) {
  INGLE_ASSIGN_OR_RETURN(const Json json, parse_json(body));
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(json, ""));
  INGLE_ASSIGN_OR_RETURN(const auto content, object.get_string("content"));
  if (!content) {
    return missing_field("content", "a string");
  }
  INGLE_ASSIGN_OR_RETURN(const auto special, object.get_bool("add_special"));
  INGLE_ASSIGN_OR_RETURN(const auto pieces, object.get_bool("with_pieces"));
  INGLE_RETURN_IF_ERROR(refuse_missing_features(object));
  INGLE_ASSIGN_OR_RETURN(
      const std::vector<TokenId> ids,
      encode_text(*content, special.value_or(false), "content", model));
  Json answer;
  if (pieces.value_or(false)) {
    INGLE_ASSIGN_OR_RETURN(
        answer["tokens"], with_pieces(ids, *model.tokenizer));
  } else {
    answer["tokens"] = ids;
  }
  return to_text(answer);
}

Result<std::string> detokenize(
    std::string_view body,
    const ServedModel& model) {
  const std::string path = "tokens";
  INGLE_ASSIGN_OR_RETURN(const Json json, parse_json(body));
  INGLE_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::from(json, ""));
  const Json* const tokens = object.find(path);
  constexpr std::string_view kExpected = "an array of token ids";
  if (tokens == nullptr) {
    return missing_field(path, kExpected);
  }
  if (!tokens->is_array()) {
    return wrong_type(path, kExpected, *tokens);
  }
  INGLE_ASSIGN_OR_RETURN(
      const std::vector<TokenId> ids, token_ids(*tokens, path));
  if (model.tokenizer == nullptr) {
    return no_tokenizer(path, model);
  }
  INGLE_RETURN_IF_ERROR(
      check_token_ids(ids, model.tokenizer->vocab_size(), path));
  const auto text = model.tokenizer->decode(ids, /*skip_special_tokens=*/false);
  if (text.status().code() == StatusCode::kInvalidRequest) {
    return invalid_field(
        path,
        "expected ids that the model's tokenizer knows, got: " +
            text.status().message());
  }
  INGLE_RETURN_IF_ERROR(text.status());
  Json answer;
  answer["content"] = *text;
  return to_text(answer);
}

Result<std::string> apply_template(
    std::string_view body,
    const ServedModel& model) {
  INGLE_ASSIGN_OR_RETURN(
      const ChatRequest request, parse_chat_request(body, model.defaults));
  INGLE_ASSIGN_OR_RETURN(const std::string text, render_chat(request, model));
  Json answer;
  answer["prompt"] = text;
  return to_text(answer);
}

} // namespace ingle
