#include "api/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/utf8.h"

namespace ingle {
namespace {

// The part of `echo` that a token stands for.
std::string_view room_of(std::string_view token, std::string_view echo) {
  if (echo.starts_with(token)) {
    return token;
  }
  // Some vocabularies begin every text with a space that is not in it.
  const bool has_space = token.starts_with(' ');
  return has_space && echo.starts_with(token.substr(1)) ? token.substr(1)
                                                        : std::string_view();
}

// The key of a token in OpenAI's maps.
std::string key_of(const std::string& bytes) {
  if (is_utf8(bytes)) {
    return bytes;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string key = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    key += "\\x";
    key += kHex[byte >> 4];
    key += kHex[byte & 15];
  }
  return key;
}

} // namespace

GeneratedToken unpredicted(TokenId id) {
  return {id, std::numeric_limits<float>::quiet_NaN(), {}};
}

void TextPosition::advance(std::string_view text) {
  bytes += text.size();
  characters +=
      static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      }));
}

void LogprobsWriter::add_chat(
    Json& block,
    std::span<const GeneratedToken> tokens) const {
  add_content(block, tokens);
  block["refusal"] = nullptr;
}

void LogprobsWriter::add_completion(
    Json& block,
    std::span<const GeneratedToken> tokens,
    std::string_view echo,
    TextPosition& position) const {
  for (const GeneratedToken& token : tokens) {
    const std::string bytes = bytes_of(token.id);
    block["tokens"].push_back(bytes);
    block["token_logprobs"].push_back(token.logprob);
    block["top_logprobs"].push_back(alternatives(token));
    block["text_offset"].push_back(position.characters);
    const bool is_echoed = position.bytes < echo.size();
    position.advance(
        is_echoed ? room_of(bytes, echo.substr(position.bytes)) : bytes);
  }
  add_content(block, tokens);
}

std::string LogprobsWriter::bytes_of(TokenId id) const {
  if (tokenizer_ == nullptr) {
    return {};
  }
  // Embeddings are padded to round sizes: such ids have no text.
  auto bytes = tokenizer_->token_bytes(id);
  return bytes.is_ok() ? *std::move(bytes) : std::string();
}

Json LogprobsWriter::entry(TokenId id, float logprob) const {
  const std::string bytes = bytes_of(id);
  Json entry;
  entry["id"] = id;
  entry["token"] = bytes;
  entry["bytes"] = Json::array();
  for (const char c : bytes) {
    entry["bytes"].push_back(static_cast<unsigned char>(c));
  }
  entry["logprob"] = logprob;
  return entry;
}

void LogprobsWriter::add_content(
    Json& block,
    std::span<const GeneratedToken> tokens) const {
  for (const GeneratedToken& token : tokens) {
    Json item = entry(token.id, token.logprob);
    item["top_logprobs"] = Json::array();
    for (const TokenLogprob& other : token.top) {
      item["top_logprobs"].push_back(entry(other.id, other.logprob));
    }
    block["content"].push_back(std::move(item));
  }
}

// Of tokens with the same text the most likely stands.
Json LogprobsWriter::alternatives(const GeneratedToken& token) const {
  if (std::isnan(token.logprob)) {
    return nullptr;
  }
  Json map = Json::object();
  for (const TokenLogprob& other : token.top) {
    map.emplace(key_of(bytes_of(other.id)), other.logprob);
  }
  map.emplace(key_of(bytes_of(token.id)), token.logprob);
  return map;
}

} // namespace ingle
