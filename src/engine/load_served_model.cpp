#include "engine/load_served_model.h"

#include <algorithm>

#include "base/free_memory.h"
#include "engine/generator.h"
#include "model/field_reader.h"
#include "weights/strict_json.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

// The content of a file; nothing where it isn't there.
Result<std::optional<std::string>> read_optional(
    FileSystem& fs,
    const std::string& path) {
  Result<std::string> text = fs.read(path);
  if (text.is_ok()) {
    return std::optional(std::move(text).value());
  }
  if (text.status().code() == StatusCode::kNotFound) {
    return std::optional<std::string>();
  }
  return std::move(text).status();
}

// The object in a JSON file; an empty one where there is no file.
Result<Json> read_object(FileSystem& fs, const std::string& path) {
  INGLE_ASSIGN_OR_RETURN(const auto text, read_optional(fs, path));
  if (!text) {
    return Json::object();
  }
  INGLE_ASSIGN_OR_RETURN(Json object, parse_strict_json(*text, path));
  if (!object.is_object()) {
    return Status::corruption(path + ": not a JSON object");
  }
  return object;
}

// A token is a string, or an object with its "content". Empty: there is none.
std::string token_text(const Json& config, std::string_view key) {
  const auto it = config.find(key);
  if (it == config.end()) {
    return {};
  }
  if (it->is_object()) {
    return it->value("content", Json()).is_string()
        ? it->at("content").get<std::string>()
        : std::string();
  }
  return it->is_string() ? it->get<std::string>() : std::string();
}

// The template's text and the file that it stands in.
struct TemplateSource {
  std::string text;
  std::string origin;
};

// tokenizer_config.json may hold one template or a list of named ones.
std::optional<std::string> inline_template(const Json& tokenizer_config) {
  const auto it = tokenizer_config.find("chat_template");
  if (it == tokenizer_config.end()) {
    return std::nullopt;
  }
  if (it->is_string()) {
    return it->get<std::string>();
  }
  if (it->is_array()) {
    for (const auto& named : *it) {
      if (named.is_object() && named.value("name", Json()) == "default" &&
          named.value("template", Json()).is_string()) {
        return named.at("template").get<std::string>();
      }
    }
  }
  return std::nullopt;
}

Result<std::optional<TemplateSource>> find_template(
    FileSystem& fs,
    const std::string& folder,
    const Json& tokenizer_config) {
  const std::string path = join_path(folder, "chat_template.jinja");
  INGLE_ASSIGN_OR_RETURN(auto text, read_optional(fs, path));
  if (text) {
    return std::optional(TemplateSource{std::move(*text), path});
  }
  if (auto source = inline_template(tokenizer_config)) {
    return std::optional(TemplateSource{
        std::move(*source), join_path(folder, "tokenizer_config.json")});
  }
  return std::optional<TemplateSource>();
}

template <typename T>
void override_with(std::optional<T>& value, const std::optional<T>& by) {
  if (by) {
    value = by;
  }
}

void override_defaults(
    GenerationDefaults& defaults,
    const GenerationDefaults& by) {
  override_with(defaults.max_tokens, by.max_tokens);
  override_with(defaults.temperature, by.temperature);
  defaults.has_temperature_flag = by.temperature.has_value();
  override_with(defaults.top_p, by.top_p);
  override_with(defaults.min_p, by.min_p);
  override_with(defaults.top_k, by.top_k);
  override_with(defaults.repetition_penalty, by.repetition_penalty);
  override_with(defaults.thinking, by.thinking);
}

// Adds what generation_config.json says.
Status read_generation_config(
    FileSystem& fs,
    const std::string& folder,
    ServedModel& model) {
  const std::string path = join_path(folder, "generation_config.json");
  INGLE_ASSIGN_OR_RETURN(const Json config, read_object(fs, path));
  FieldReader reader(config, path);
  model.defaults.temperature = reader.optional_number("temperature", 0, 100);
  model.defaults.top_p = reader.optional_number("top_p", 0, 1);
  model.defaults.min_p = reader.optional_number("min_p", 0, 1);
  model.defaults.top_k = reader.optional_count("top_k", kMaxModelSize);
  model.defaults.repetition_penalty =
      reader.optional_number("repetition_penalty", 0, 100);
  for (const TokenId id : reader.token_ids("eos_token_id")) {
    model.eos.push_back(id);
  }
  INGLE_RETURN_IF_ERROR(reader.status());
  const float penalty = model.defaults.repetition_penalty.value_or(0);
  if (penalty > 0 && penalty < kLeastRepetitionPenalty) {
    return Status::corruption(
        path + ": repetition_penalty has to be 0 (off), or from 0.01 to 100");
  }
  return Status::ok();
}

Result<std::vector<TokenId>> line_break_tokens(const ServedModel& model) {
  if (!model.tokenizer) {
    return std::vector<TokenId>();
  }
  return model.tokenizer->encode("\n", /*add_special_tokens=*/false);
}

void sort_and_unique(std::vector<TokenId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

} // namespace

Result<std::shared_ptr<ServedModel>> load_served_model(
    FileSystem& fs,
    const Clock& clock,
    const std::string& folder,
    const ModelConfig& config,
    const GenerationDefaults& overrides) {
  auto model = std::make_shared<ServedModel>();
  model->name = base_name(folder);
  model->created = clock.since_epoch();
  model->context_length = config.max_position_embeddings;
  model->vocab_size = config.vocab_size;
  model->eos = config.eos;

  const std::string tokenizer_path = join_path(folder, "tokenizer.json");
  if (fs.exists(tokenizer_path)) {
    INGLE_ASSIGN_OR_RETURN(
        model->tokenizer, Tokenizer::load(fs, tokenizer_path));
    give_back_free_memory();
  }
  INGLE_ASSIGN_OR_RETURN(
      const Json tokenizer_config,
      read_object(fs, join_path(folder, "tokenizer_config.json")));
  for (const std::string_view name : kSpecialTokens) {
    if (std::string text = token_text(tokenizer_config, name); !text.empty()) {
      model->special_tokens.emplace(name, std::move(text));
    }
  }
  if (const auto eos = model->special_token_id("eos_token")) {
    model->eos.push_back(*eos);
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto source, find_template(fs, folder, tokenizer_config));
  if (source) {
    INGLE_ASSIGN_OR_RETURN(
        model->chat_template,
        ChatTemplate::compile(source->text, source->origin, clock));
  }
  model->markup = find_output_markup(
      source ? source->text : std::string(), model->tokenizer.get());
  INGLE_RETURN_IF_ERROR(read_generation_config(fs, folder, *model));
  override_defaults(model->defaults, overrides);
  sort_and_unique(model->eos);
  INGLE_ASSIGN_OR_RETURN(model->xtc_exempt, line_break_tokens(*model));
  model->xtc_exempt.insert(
      model->xtc_exempt.end(), model->eos.begin(), model->eos.end());
  sort_and_unique(model->xtc_exempt);
  if (model->tokenizer) {
    model->grammars = std::make_shared<GrammarCompiler>(
        model->tokenizer, model->eos, model->vocab_size);
  }
  return model;
}

} // namespace ingle
