#include "import/pre_tokenizers.h"

#include <algorithm>

namespace ingle {
namespace {

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|)"
    R"( ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

PreTokenizer gpt2(std::string_view name) {
  PreTokenizer pre;
  pre.name = name;
  pre.uses_gpt2_regex = true;
  return pre;
}

PreTokenizer digits_and_gpt2(std::string_view name) {
  PreTokenizer pre = gpt2(name);
  pre.splits_digits = true;
  return pre;
}

PreTokenizer llama3(std::string_view name) {
  PreTokenizer pre;
  pre.name = name;
  pre.splits = {kLlama3};
  pre.ignores_merges = true;
  pre.adds_bos = true;
  return pre;
}

PreTokenizer qwen2() {
  PreTokenizer pre;
  pre.name = "qwen2";
  pre.splits = {kQwen2};
  pre.normalizes_nfc = true;
  return pre;
}

// What files without a name of their own are read as.
PreTokenizer fallback() {
  PreTokenizer pre;
  pre.name = "default";
  pre.splits = {
      R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"};
  return pre;
}

const std::vector<PreTokenizer>& pre_tokenizers() {
  static const std::vector<PreTokenizer> kAll = {
      fallback(),
      gpt2("gpt-2"),
      gpt2("mpt"),
      gpt2("olmo"),
      digits_and_gpt2("smollm"),
      digits_and_gpt2("starcoder"),
      digits_and_gpt2("refact"),
      digits_and_gpt2("command-r"),
      digits_and_gpt2("codeshell"),
      llama3("llama-bpe"),
      llama3("llama3"),
      llama3("llama-v3"),
      qwen2()};
  return kAll;
}

} // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  const auto& all = pre_tokenizers();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const PreTokenizer& pre) {
        return pre.name == name;
      });
  return found == all.end() ? nullptr : &*found;
}

std::string known_pre_tokenizers() {
  std::string names;
  for (const PreTokenizer& pre : pre_tokenizers()) {
    names += (names.empty() ? "" : ", ") + std::string(pre.name);
  }
  return names;
}

} // namespace ingle
