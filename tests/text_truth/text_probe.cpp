// What our tokenizers and templates make of an input, for tests that compare it
// with what Hugging Face's libraries make of it.
//
// Reads a JSON object a line and writes one for each:
//   {"op": "encode", "tokenizer": PATH, "text": TEXT, "special": BOOL}
//     -> {"ids": [...]}
//   {"op": "decode", "tokenizer": PATH, "ids": [...], "skip_special": BOOL}
//     -> {"text": TEXT}
//   {"op": "stream", "tokenizer": PATH, "ids": [...]}
//     -> {"pieces": [...]}, what each id added
//   {"op": "token_bytes", "tokenizer": PATH, "ids": [...]}
//     -> {"bytes": [...]}, in hexadecimal
//   {"op": "render", "template": SOURCE, "context": JSON-TEXT, "now": SECONDS}
//     -> {"text": TEXT}
//   {"op": "chat", "template": SOURCE, "body": JSON-TEXT, "now": SECONDS,
//    "tokens": {NAME: TEXT}, "tokenizer": PATH or nothing}
//     -> {"prompt": TEXT, "ids": [...]}, the ids where there is a tokenizer
//   {"op": "route", "template": SOURCE, "text": TEXT, "body": JSON-TEXT}
//     -> {"content": TEXT, "reasoning": TEXT, "calls": [{"name",
//     "arguments"}]}, what an answer comes to where the body of the request has
//     these tools
//   {"op": "rebuild", "gguf": PATH, "out": PATH}, writes a tokenizer.json
//     -> {}
// What fails gives {"error": MESSAGE}. A line that is no such object ends it.
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "api/chat_tools.h"
#include "api/json_reader.h"
#include "api/prompt.h"
#include "api/text_request.h"
#include "base/file_system.h"
#include "engine/served_model.h"
#include "import/gguf_reader.h"
#include "import/tokenizer_rebuild.h"
#include "text/chat_template.h"
#include "text/output_router.h"
#include "text/stream_decoder.h"
#include "text/testing/routed.h"
#include "text/tokenizer.h"

namespace ingle {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

class FixedClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return {};
  }
  std::chrono::milliseconds since_epoch() const override {
    return time;
  }

  std::chrono::milliseconds time{0};
};

std::string hexadecimal(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

class Probe {
 public:
  // Throws what nlohmann_json does, for a request that is none.
  Result<Json> answer(const Json& request) {
    const auto op = request.at("op").get<std::string>();
    if (op == "render") {
      return render(request);
    }
    if (op == "chat") {
      return chat(request);
    }
    if (op == "rebuild") {
      return rebuild(request);
    }
    if (op == "route") {
      return route_answer(request);
    }
    INGLE_ASSIGN_OR_RETURN(
        const auto tokenizer, load(request.at("tokenizer").get<std::string>()));
    if (op == "encode") {
      INGLE_ASSIGN_OR_RETURN(
          const Ids ids,
          tokenizer->encode(
              request.at("text").get<std::string>(),
              request.at("special").get<bool>()));
      return Json{{"ids", ids}};
    }
    const auto ids = request.at("ids").get<Ids>();
    if (op == "decode") {
      INGLE_ASSIGN_OR_RETURN(
          const std::string text,
          tokenizer->decode(ids, request.at("skip_special").get<bool>()));
      return Json{{"text", text}};
    }
    if (op == "stream") {
      return stream(tokenizer, ids);
    }
    if (op == "token_bytes") {
      return token_bytes(*tokenizer, ids);
    }
    return Status::invalid_request("no op '" + op + "'");
  }

 private:
  Result<std::shared_ptr<const Tokenizer>> load(const std::string& path) {
    auto& tokenizer = tokenizers_[path];
    if (tokenizer == nullptr) {
      INGLE_ASSIGN_OR_RETURN(tokenizer, Tokenizer::load(*fs_, path));
    }
    return tokenizer;
  }

  static Result<Json> stream(
      const std::shared_ptr<const Tokenizer>& tokenizer,
      const Ids& ids) {
    StreamDecoder decoder(tokenizer);
    Json pieces = Json::array();
    for (const TokenId id : ids) {
      INGLE_ASSIGN_OR_RETURN(std::string piece, decoder.push(id));
      pieces.push_back(std::move(piece));
    }
    return Json{{"pieces", std::move(pieces)}};
  }

  static Result<Json> token_bytes(const Tokenizer& tokenizer, const Ids& ids) {
    Json all = Json::array();
    for (const TokenId id : ids) {
      INGLE_ASSIGN_OR_RETURN(
          const std::string bytes, tokenizer.token_bytes(id));
      all.push_back(hexadecimal(bytes));
    }
    return Json{{"bytes", std::move(all)}};
  }

  // Sets the time that it reads, too.
  Result<std::shared_ptr<const ChatTemplate>> compile(const Json& request) {
    clock_.time = std::chrono::seconds(request.at("now").get<int64_t>());
    const auto source = request.at("template").get<std::string>();
    auto& compiled = templates_[source];
    if (compiled == nullptr) {
      INGLE_ASSIGN_OR_RETURN(
          compiled, ChatTemplate::compile(source, "template", clock_));
    }
    return compiled;
  }

  Result<Json> render(const Json& request) {
    INGLE_ASSIGN_OR_RETURN(const auto compiled, compile(request));
    INGLE_ASSIGN_OR_RETURN(
        const std::string text,
        compiled->render(request.at("context").get<std::string>()));
    return Json{{"text", text}};
  }

  Result<Json> chat(const Json& request) {
    ServedModel model;
    model.name = "probe";
    model.context_length = 1 << 24;
    for (const auto& [name, text] : request.at("tokens").items()) {
      model.special_tokens.emplace(name, text.get<std::string>());
    }
    INGLE_ASSIGN_OR_RETURN(model.chat_template, compile(request));
    const auto body = request.at("body").get<std::string>();
    INGLE_ASSIGN_OR_RETURN(
        const std::string applied, apply_template(body, model));
    Json answer = Json::parse(applied);
    if (request.contains("tokenizer")) {
      INGLE_ASSIGN_OR_RETURN(
          model.tokenizer, load(request.at("tokenizer").get<std::string>()));
      model.vocab_size = model.tokenizer->vocab_size();
      INGLE_ASSIGN_OR_RETURN(
          const auto ids,
          encode_chat(answer.at("prompt").get<std::string>(), model));
      answer["ids"] = ids;
    }
    return answer;
  }

  static Result<Json> route_answer(const Json& request) {
    OutputMarkup markup = find_output_markup(
        request.at("template").get<std::string>(), /*tokenizer=*/nullptr);
    for (const Json& special : request.at("special")) {
      markup.special_tokens.emplace(
          special.get<std::string>(),
          static_cast<TokenId>(markup.special_tokens.size() + 1));
    }
    INGLE_ASSIGN_OR_RETURN(
        const auto body, parse_json(request.at("body").get<std::string>()));
    INGLE_ASSIGN_OR_RETURN(const auto object, JsonObject::from(body, ""));
    INGLE_ASSIGN_OR_RETURN(const ChatTools tools, read_chat_tools(object));
    OutputRouting routing;
    routing.splits_thoughts = true;
    routing.tools = tools.signatures;
    const Routed routed =
        route(request.at("text").get<std::string>(), markup, routing);
    return Json{
        {"content", routed.content},
        {"reasoning", routed.reasoning},
        {"calls", routed.calls}};
  }

  Result<Json> rebuild(const Json& request) {
    const auto path = request.at("gguf").get<std::string>();
    INGLE_ASSIGN_OR_RETURN(const auto mapped, fs_->map(path));
    INGLE_ASSIGN_OR_RETURN(
        const GgufFile file, GgufFile::parse(mapped->bytes(), path));
    INGLE_ASSIGN_OR_RETURN(
        const RebuiltTokenizer rebuilt, rebuild_tokenizer(file));
    INGLE_RETURN_IF_ERROR(write_file(
        *fs_,
        request.at("out").get<std::string>(),
        as_bytes(rebuilt.tokenizer_json)));
    return Json::object();
  }

  std::unique_ptr<FileSystem> fs_ = make_posix_file_system();
  FixedClock clock_;
  std::map<std::string, std::shared_ptr<const Tokenizer>> tokenizers_;
  std::map<std::string, std::shared_ptr<const ChatTemplate>> templates_;
};

} // namespace
} // namespace ingle

int main() {
  ingle::Probe probe;
  std::string line;
  try {
    while (std::getline(std::cin, line)) {
      const auto result = probe.answer(nlohmann::json::parse(line));
      std::cout << (result.is_ok()
                        ? *result
                        : nlohmann::json{{"error", result.status().message()}})
                << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << "text_probe: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
