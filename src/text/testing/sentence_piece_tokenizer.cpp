#include "text/testing/sentence_piece_tokenizer.h"

#include <cstdio>

#include <nlohmann/json.hpp>

namespace ingle {

namespace {

using Json = nlohmann::ordered_json;

Json special_token(TokenId id, const char* content) {
  return {
      {"id", id},
      {"content", content},
      {"single_word", false},
      {"lstrip", false},
      {"rstrip", false},
      {"normalized", false},
      {"special", true}};
}

Json sequence(const char* part_name, Json parts) {
  return {{"type", "Sequence"}, {part_name, std::move(parts)}};
}

Json replace(const char* from, const char* to) {
  return {
      {"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Json metaspace() {
  return {
      {"type", "Metaspace"},
      {"replacement", "\u2581"},
      {"prepend_scheme", "first"},
      {"split", false}};
}

Json model() {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  TokenId id = kFirstByteToken;
  for (int byte = 0; byte < 256; ++byte) {
    char piece[8];
    std::snprintf(piece, sizeof piece, "<0x%02X>", byte);
    vocab[piece] = id++;
  }
  for (const char* piece : {"\u2581", "a", "b", "\u2581a", "\u2581ab"}) {
    vocab[piece] = id++;
  }
  Json merges = Json::array(
      {Json::array({"\u2581", "a"}), Json::array({"\u2581a", "b"})});
  return {
      {"type", "BPE"},
      {"dropout", nullptr},
      {"unk_token", "<unk>"},
      {"continuing_subword_prefix", nullptr},
      {"end_of_word_suffix", nullptr},
      {"fuse_unk", true},
      {"byte_fallback", true},
      {"vocab", vocab},
      {"merges", merges}};
}

} // namespace

std::string sentence_piece_tokenizer_json(SpaceStripping stripping) {
  Json byte_fallback = {{"type", "ByteFallback"}};
  Json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {special_token(0, "<unk>"),
        special_token(1, "<s>"),
        special_token(2, "</s>")}},
      {"normalizer", nullptr},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
          {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"pair", Json::array()},
        {"special_tokens",
         {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
      {"decoder", nullptr},
      {"model", model()}};
  if (stripping == SpaceStripping::kMetaspace) {
    tokenizer["pre_tokenizer"] = metaspace();
    tokenizer["decoder"] =
        sequence("decoders", Json::array({byte_fallback, metaspace()}));
  } else {
    tokenizer["normalizer"] = sequence(
        "normalizers",
        Json::array(
            {Json{{"type", "Prepend"}, {"prepend", "\u2581"}},
             replace(" ", "\u2581")}));
    tokenizer["decoder"] = sequence(
        "decoders",
        Json::array(
            {replace("\u2581", " "),
             byte_fallback,
             Json{{"type", "Fuse"}},
             Json{
                 {"type", "Strip"},
                 {"content", " "},
                 {"start", 1},
                 {"stop", 0}}}));
  }
  return tokenizer.dump();
}

} // namespace ingle
