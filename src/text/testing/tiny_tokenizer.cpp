#include "text/testing/tiny_tokenizer.h"

#include <nlohmann/json.hpp>

namespace ingle {

namespace {

using Json = nlohmann::ordered_json;

std::string utf8(unsigned code_point) { // below U+0800
  if (code_point < 0x80) {
    return std::string(1, static_cast<char>(code_point));
  }
  return {
      static_cast<char>(0xC0 | (code_point >> 6)),
      static_cast<char>(0x80 | (code_point & 0x3F))};
}

// GPT-2's spelling of a byte: the visible Latin-1 characters stand for
// themselves, the rest for U+0100 and on, in order.
std::vector<std::string> byte_spellings() {
  std::vector<std::string> spellings;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bool visible = (byte >= 0x21 && byte <= 0x7E) ||
        (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    spellings.push_back(utf8(visible ? byte : next++));
  }
  return spellings;
}

Json special_token(TokenId id, const std::string& content) {
  return {
      {"id", id},
      {"content", content},
      {"single_word", false},
      {"lstrip", false},
      {"rstrip", false},
      {"normalized", false},
      {"special", true}};
}

Json byte_level() {
  return {
      {"type", "ByteLevel"},
      {"add_prefix_space", false},
      {"trim_offsets", true},
      {"use_regex", true}};
}

} // namespace

std::string tiny_tokenizer_json(
    const std::vector<std::pair<std::string, std::string>>& merges,
    const std::vector<std::string>& specials) {
  Json vocab = Json::object();
  TokenId id = 0;
  for (const std::string& spelling : byte_spellings()) {
    vocab[spelling] = id++;
  }
  // A special token that the model does not have gets the next free id,
  // whatever its "id" says.
  Json added_tokens = Json::array();
  const auto add_special = [&](const std::string& content) {
    added_tokens.push_back(special_token(id, content));
    vocab[content] = id++;
  };
  for (const char* content : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    add_special(content);
  }
  for (const std::string& content : specials) {
    add_special(content);
  }
  Json merge_list = Json::array();
  for (const auto& [left, right] : merges) {
    vocab[left + right] = id++;
    merge_list.push_back({left, right});
  }
  Json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level()},
      {"post_processor", nullptr},
      {"decoder", byte_level()},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocab},
        {"merges", merge_list}}}};
  return tokenizer.dump();
}

} // namespace ingle
