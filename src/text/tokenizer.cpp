#include "text/tokenizer.h"

#include "text/boundary.h"

namespace ingle {

namespace {

class RustTokenizer final : public Tokenizer {
 public:
  explicit RustTokenizer(IngleTokenizer* handle) : handle_(handle) {}
  ~RustTokenizer() override {
    ingle_tokenizer_free(handle_);
  }
  RustTokenizer(const RustTokenizer&) = delete;
  RustTokenizer& operator=(const RustTokenizer&) = delete;

  Result<std::vector<TokenId>> encode(
      std::string_view text,
      bool add_special_tokens) const override {
    RustIds ids;
    RustText message;
    IngleTextCode code = ingle_tokenizer_encode(
        handle_,
        text.data(),
        text.size(),
        add_special_tokens,
        ids.out(),
        message.out());
    INGLE_RETURN_IF_ERROR(
        status_of(code, message, StatusCode::kInvalidRequest, "tokenizer"));
    return std::vector<TokenId>(ids.span().begin(), ids.span().end());
  }

  Result<std::string> decode(
      std::span<const TokenId> ids,
      bool skip_special_tokens) const override {
    RustText text;
    IngleTextCode code = ingle_tokenizer_decode(
        handle_, ids.data(), ids.size(), skip_special_tokens, text.out());
    INGLE_RETURN_IF_ERROR(
        status_of(code, text, StatusCode::kInvalidRequest, "tokenizer"));
    return text.str();
  }

  std::optional<std::string> id_to_token(TokenId id) const override {
    RustText text;
    if (ingle_tokenizer_id_to_token(handle_, id, text.out()) != kIngleTextOk) {
      return std::nullopt;
    }
    return text.str();
  }

  Result<std::string> token_bytes(TokenId id) const override {
    RustText bytes;
    IngleTextCode code = ingle_tokenizer_token_bytes(handle_, id, bytes.out());
    INGLE_RETURN_IF_ERROR(
        status_of(code, bytes, StatusCode::kInvalidRequest, "tokenizer"));
    return bytes.str();
  }

  std::optional<TokenId> token_to_id(std::string_view token) const override {
    TokenId id = 0;
    if (ingle_tokenizer_token_to_id(handle_, token.data(), token.size(), &id) !=
        kIngleTextOk) {
      return std::nullopt;
    }
    return id;
  }

  TokenId vocab_size() const override {
    return ingle_tokenizer_vocab_size(handle_);
  }

  const IngleTokenizer* handle() const override {
    return handle_;
  }

 private:
  IngleTokenizer* handle_; // owned
};

} // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(
    std::string_view json,
    const std::string& origin) {
  IngleTokenizer* handle = nullptr;
  RustText message;
  IngleTextCode code =
      ingle_tokenizer_create(json.data(), json.size(), &handle, message.out());
  INGLE_RETURN_IF_ERROR(status_of(
      code,
      message,
      StatusCode::kCorruption,
      origin + ": not a tokenizer that can be used"));
  return std::shared_ptr<const Tokenizer>(
      std::make_shared<RustTokenizer>(handle));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(
    FileSystem& fs,
    const std::string& path) {
  INGLE_ASSIGN_OR_RETURN(std::string json, fs.read(path));
  return from_json(json, path);
}

} // namespace ingle
