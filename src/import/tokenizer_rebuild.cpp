#include "import/tokenizer_rebuild.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "import/piece_merges.h"
#include "import/pre_tokenizers.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kPrefix = "tokenizer.ggml.";
// U+2581, which SentencePiece writes for a space.
constexpr const char* kSpaceMark = "\xe2\x96\x81";

// The values of tokenizer.ggml.token_type.
enum class TokenKind : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// What control tokens that end a turn are called by the models that have them.
// Files whose metadata names only the end of a text still have them.
constexpr std::array<std::string_view, 8> kEndOfTurnTexts = {
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<|end_of_turn|>",
    "<EOT>"};

std::string dump(const ordered_json& json, int indent = -1) {
  // All text was checked to be UTF-8, so that nothing is replaced.
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

std::string key_of(std::string_view name) {
  return std::string(kPrefix) + std::string(name);
}

class TokenizerRebuilder {
 public:
  explicit TokenizerRebuilder(const GgufFile& file) : file_(file) {}

  Result<RebuiltTokenizer> rebuild() {
    INGLE_RETURN_IF_ERROR(read_tokens());
    INGLE_RETURN_IF_ERROR(read_special_ids());
    INGLE_ASSIGN_OR_RETURN(
        const auto model, file_.get<std::string_view>(key_of("model")));
    ordered_json parts;
    if (model == "gpt2") {
      INGLE_ASSIGN_OR_RETURN(parts, byte_level_parts());
    } else if (model == "llama") {
      INGLE_ASSIGN_OR_RETURN(parts, sentence_piece_parts());
    } else {
      return unsupported(
          "tokenizer " + quote_name(model) +
          " is not supported; ingle imports gpt2 and llama");
    }
    INGLE_ASSIGN_OR_RETURN(const auto post, post_processor());
    result_.tokenizer_json = assemble(parts, post);
    INGLE_RETURN_IF_ERROR(write_config());
    return std::move(result_);
  }

 private:
  Status corruption(const std::string& problem) const {
    return Status::corruption(file_.origin() + ": " + problem);
  }
  Status unsupported(const std::string& problem) const {
    return Status::unsupported(file_.origin() + ": " + problem);
  }

  Status read_tokens() {
    INGLE_ASSIGN_OR_RETURN(
        const auto texts, file_.get_list<std::string_view>(key_of("tokens")));
    INGLE_ASSIGN_OR_RETURN(
        kinds_, file_.get_list<int32_t>(key_of("token_type")));
    if (kinds_.size() != texts.size()) {
      return corruption("its tokens and token types differ in number");
    }
    if (texts.size() > INT32_MAX) {
      return corruption("has too many tokens");
    }
    tokens_.reserve(texts.size()); // known_ points into the strings
    for (size_t id = 0; id < texts.size(); ++id) {
      if (!is_utf8(texts[id])) {
        return corruption("token " + std::to_string(id) + " is not UTF-8");
      }
      tokens_.emplace_back(texts[id]);
      if (!known_.insert(tokens_.back()).second) {
        return corruption("token " + quote_name(texts[id]) + " stands twice");
      }
    }
    return Status::ok();
  }

  bool is_kind(size_t id, TokenKind kind) const {
    return kinds_[id] == static_cast<int32_t>(kind);
  }

  Result<std::optional<int64_t>> find_id(std::string_view name) const {
    INGLE_ASSIGN_OR_RETURN(const auto id, file_.find<uint64_t>(key_of(name)));
    if (!id) {
      return std::optional<int64_t>();
    }
    if (*id >= tokens_.size()) {
      return corruption(
          key_of(name) + " is " + std::to_string(*id) + ", but there are " +
          std::to_string(tokens_.size()) + " tokens");
    }
    return std::optional(static_cast<int64_t>(*id));
  }

  Status read_special_ids() {
    INGLE_ASSIGN_OR_RETURN(result_.bos, find_id("bos_token_id"));
    INGLE_ASSIGN_OR_RETURN(unknown_, find_id("unknown_token_id"));
    INGLE_ASSIGN_OR_RETURN(padding_, find_id("padding_token_id"));
    for (const char* name : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
      INGLE_ASSIGN_OR_RETURN(const auto id, find_id(name));
      if (id) {
        add_end(*id);
      }
    }
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (is_kind(id, TokenKind::kControl) &&
          std::count(
              kEndOfTurnTexts.begin(), kEndOfTurnTexts.end(), tokens_[id])) {
        add_end(static_cast<int64_t>(id));
      }
    }
    return Status::ok();
  }

  void add_end(int64_t id) {
    if (std::count(result_.eos.begin(), result_.eos.end(), id) == 0) {
      result_.eos.push_back(id);
    }
  }

  Result<ordered_json> byte_level_parts() {
    INGLE_ASSIGN_OR_RETURN(
        const auto name, file_.find<std::string_view>(key_of("pre")));
    const PreTokenizer* pre = find_pre_tokenizer(name.value_or("default"));
    if (pre == nullptr) {
      return unsupported(
          "pre-tokenizer " + quote_name(*name) +
          " is not supported; ingle knows " + known_pre_tokenizers());
    }
    adds_bos_by_default_ = pre->adds_bos;
    INGLE_RETURN_IF_ERROR(read_merges());
    ordered_json steps = ordered_json::array();
    for (const std::string_view split : pre->splits) {
      steps.push_back(
          {{"type", "Split"},
           {"pattern", {{"Regex", split}}},
           {"behavior", "Isolated"},
           {"invert", false}});
    }
    if (pre->splits_digits) {
      steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
    }
    const auto byte_level = [](bool uses_regex) {
      return ordered_json{
          {"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", uses_regex}};
    };
    steps.push_back(byte_level(pre->uses_gpt2_regex));
    return ordered_json{
        {"normalizer",
         pre->normalizes_nfc ? ordered_json{{"type", "NFC"}} : nullptr},
        {"pre_tokenizer",
         {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
        {"decoder", byte_level(true)},
        {"model",
         {{"unk_token", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", pre->ignores_merges}}}};
  }

  // "left right", as GGUF keeps the merges of byte-level BPE.
  Status read_merges() {
    INGLE_ASSIGN_OR_RETURN(
        const auto lines, file_.get_list<std::string_view>(key_of("merges")));
    merges_.reserve(lines.size());
    std::string whole;
    for (size_t i = 0; i < lines.size(); ++i) {
      // A token may begin with a space, but none is empty.
      const size_t space = lines[i].find(' ', 1);
      const bool has_two = space != std::string_view::npos;
      const Merge merge = has_two
          ? Merge{lines[i].substr(0, space), lines[i].substr(space + 1)}
          : Merge{};
      whole.assign(merge.first).append(merge.second);
      if (!has_two || known_.count(merge.first) == 0 ||
          known_.count(merge.second) == 0 || known_.count(whole) == 0) {
        return corruption(
            "merge " + std::to_string(i) + ", " + quote_name(lines[i]) +
            ", does not make a token out of two");
      }
      merges_.push_back(merge);
    }
    return Status::ok();
  }

  Result<ordered_json> sentence_piece_parts() {
    INGLE_ASSIGN_OR_RETURN(
        const auto scores, file_.get_list<float>(key_of("scores")));
    if (scores.size() != tokens_.size()) {
      return corruption("its tokens and scores differ in number");
    }
    std::vector<Piece> pieces(tokens_.size());
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].size() > kMaxPieceBytes) {
        return unsupported(
            "token " + std::to_string(id) + " is longer than " +
            std::to_string(kMaxPieceBytes) + " bytes");
      }
      pieces[id].text = tokens_[id];
      // NaN has no place in an order.
      pieces[id].score = scores[id] == scores[id] ? scores[id] : 0.0f;
      pieces[id].can_merge = is_kind(id, TokenKind::kNormal) ||
          is_kind(id, TokenKind::kUserDefined) ||
          is_kind(id, TokenKind::kUnused);
    }
    merges_ = merges_from_pieces(pieces);
    adds_bos_by_default_ = true;
    INGLE_ASSIGN_OR_RETURN(
        const auto add_prefix, file_.find<bool>(key_of("add_space_prefix")));
    return sentence_piece_steps(add_prefix.value_or(true));
  }

  ordered_json sentence_piece_steps(bool adds_prefix) const {
    const auto replace = [](const char* from, const char* to) {
      return ordered_json{
          {"type", "Replace"},
          {"pattern", {{"String", from}}},
          {"content", to}};
    };
    ordered_json normalizers = ordered_json::array();
    ordered_json decoders = {
        replace(kSpaceMark, " "),
        {{"type", "ByteFallback"}},
        {{"type", "Fuse"}}};
    if (adds_prefix) {
      normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
      decoders.push_back(
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    normalizers.push_back(replace(" ", kSpaceMark));
    return {
        {"normalizer",
         {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
        {"pre_tokenizer", nullptr},
        {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
        {"model",
         {{"unk_token", unknown_ ? ordered_json(token(*unknown_)) : nullptr},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"ignore_merges", false}}}};
  }

  const std::string& token(int64_t id) const {
    return tokens_[static_cast<size_t>(id)];
  }

  // Adds bos before and eos after a text, where the file says so.
  Result<ordered_json> post_processor() {
    INGLE_ASSIGN_OR_RETURN(
        const auto add_bos, file_.find<bool>(key_of("add_bos_token")));
    INGLE_ASSIGN_OR_RETURN(
        const auto add_eos, file_.find<bool>(key_of("add_eos_token")));
    adds_bos_ = add_bos.value_or(adds_bos_by_default_) && result_.bos;
    adds_eos_ = add_eos.value_or(false) && !result_.eos.empty();
    if (!adds_bos_ && !adds_eos_) {
      return ordered_json(nullptr);
    }
    ordered_json special = ordered_json::object();
    const auto sequence = [&](ordered_json& steps, const char* name, int type) {
      const auto add_special = [&](int64_t id) {
        steps.push_back(
            {{"SpecialToken", {{"id", token(id)}, {"type_id", type}}}});
        special[token(id)] = {
            {"id", token(id)},
            {"ids", ordered_json::array({id})},
            {"tokens", ordered_json::array({token(id)})}};
      };
      if (adds_bos_) {
        add_special(*result_.bos);
      }
      steps.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
      if (adds_eos_) {
        add_special(result_.eos.front());
      }
    };
    ordered_json single = ordered_json::array();
    sequence(single, "A", 0);
    ordered_json pair = single;
    sequence(pair, "B", 1);
    return ordered_json{
        {"type", "TemplateProcessing"},
        {"single", std::move(single)},
        {"pair", std::move(pair)},
        {"special_tokens", std::move(special)}};
  }

  ordered_json added_tokens() const {
    ordered_json added = ordered_json::array();
    for (size_t id = 0; id < tokens_.size(); ++id) {
      const bool is_special =
          is_kind(id, TokenKind::kControl) || is_kind(id, TokenKind::kUnknown);
      if ((is_special || is_kind(id, TokenKind::kUserDefined)) &&
          !tokens_[id].empty()) {
        added.push_back(
            {{"id", id},
             {"content", tokens_[id]},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", false},
             {"special", is_special}});
      }
    }
    return added;
  }

  // The vocabulary and the merges are written piece by piece: as a JSON value
  // in memory they would be many times the size of the file.
  std::string assemble(const ordered_json& parts, const ordered_json& post)
      const {
    std::string text = R"({"version":"1.0","truncation":null,"padding":null)";
    text += ",\n\"added_tokens\":" + dump(added_tokens());
    text += ",\n\"normalizer\":" + dump(parts["normalizer"]);
    text += ",\n\"pre_tokenizer\":" + dump(parts["pre_tokenizer"]);
    text += ",\n\"post_processor\":" + dump(post);
    text += ",\n\"decoder\":" + dump(parts["decoder"]);
    text += ",\n\"model\":{\"type\":\"BPE\",\"dropout\":null";
    for (const auto& [name, value] : parts["model"].items()) {
      text += ",\"" + name + "\":" + dump(value);
    }
    text += R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null)";
    text += ",\"vocab\":{";
    for (size_t id = 0; id < tokens_.size(); ++id) {
      text += id == 0 ? "\n" : ",\n";
      text += dump(tokens_[id]) + ":" + std::to_string(id);
    }
    text += "},\"merges\":[";
    for (size_t i = 0; i < merges_.size(); ++i) {
      text += i == 0 ? "\n[" : ",\n[";
      text += dump(merges_[i].first) + "," + dump(merges_[i].second) + "]";
    }
    return text + "]}}\n";
  }

  Status write_config() {
    INGLE_ASSIGN_OR_RETURN(
        const auto chat_template,
        file_.find<std::string_view>("tokenizer.chat_template"));
    INGLE_ASSIGN_OR_RETURN(
        const auto architecture,
        file_.get<std::string_view>("general.architecture"));
    INGLE_ASSIGN_OR_RETURN(
        const auto context,
        file_.find<uint64_t>(std::string(architecture) + ".context_length"));
    ordered_json config = {
        {"tokenizer_class", "PreTrainedTokenizerFast"},
        {"clean_up_tokenization_spaces", false},
        {"add_bos_token", adds_bos_},
        {"add_eos_token", adds_eos_}};
    const auto name = [&](const char* key, std::optional<int64_t> id) {
      config[key] = id ? ordered_json(token(*id)) : ordered_json(nullptr);
    };
    name("bos_token", result_.bos);
    name(
        "eos_token",
        result_.eos.empty() ? std::nullopt : std::optional(result_.eos[0]));
    name("unk_token", unknown_);
    name("pad_token", padding_);
    if (context) {
      config["model_max_length"] = *context;
    }
    if (chat_template) {
      if (!is_utf8(*chat_template)) {
        return corruption("its chat template is not UTF-8");
      }
      result_.chat_template = *chat_template;
    }
    result_.tokenizer_config_json = dump(config, 2) + "\n";
    return Status::ok();
  }

  const GgufFile& file_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> kinds_; // TokenKind, or a number that is none
  std::unordered_set<std::string_view> known_; // the tokens
  std::vector<Merge> merges_;
  std::optional<int64_t> unknown_;
  std::optional<int64_t> padding_;
  bool adds_bos_by_default_ = false;
  bool adds_bos_ = false;
  bool adds_eos_ = false;
  RebuiltTokenizer result_;
};

} // namespace

Result<RebuiltTokenizer> rebuild_tokenizer(const GgufFile& file) {
  return TokenizerRebuilder(file).rebuild();
}

} // namespace ingle
