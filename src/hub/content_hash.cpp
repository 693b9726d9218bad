#include "hub/content_hash.h"

#include <array>

#include <openssl/evp.h>

namespace ingle {
namespace {

constexpr size_t kSha1Digits = 40;
constexpr size_t kSha256Digits = 64;
constexpr std::string_view kDigits = "0123456789abcdef";

struct ContextDeleter {
  void operator()(EVP_MD_CTX* context) const {
    EVP_MD_CTX_free(context);
  }
};

} // namespace

struct ContentHash::State {
  std::unique_ptr<EVP_MD_CTX, ContextDeleter> context{EVP_MD_CTX_new()};
};

void ContentHash::Deleter::operator()(State* state) const {
  delete state;
}

ContentHash::ContentHash(std::unique_ptr<State, Deleter> state)
    : state_(std::move(state)) {}

std::optional<ContentHash> ContentHash::of_etag(
    std::string_view etag,
    uint64_t size) {
  const bool is_git = etag.size() == kSha1Digits;
  if ((!is_git && etag.size() != kSha256Digits) ||
      etag.find_first_not_of(kDigits) != std::string_view::npos) {
    return std::nullopt;
  }
  ContentHash hash(std::unique_ptr<State, Deleter>(new State));
  EVP_DigestInit_ex(
      hash.state_->context.get(), is_git ? EVP_sha1() : EVP_sha256(), nullptr);
  if (is_git) {
    const std::string head = "blob " + std::to_string(size);
    hash.update(as_bytes(std::string_view(head.c_str(), head.size() + 1)));
  }
  return hash;
}

void ContentHash::update(ByteView bytes) {
  EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

std::string ContentHash::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

} // namespace ingle
