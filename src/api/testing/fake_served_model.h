// A model that needs no files; for tests.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/served_model.h"

namespace ingle {

// One token per byte; "<s>" and "</s>" are one token too (kBos, kEos). It puts
// kBos in front, and kEos at the end if it is told to.
class FakeTokenizer final : public Tokenizer {
 public:
  static constexpr TokenId kBos = 256;
  static constexpr TokenId kEos = 257;

  explicit FakeTokenizer(bool appends_eos = false)
      : appends_eos_(appends_eos) {}

  Result<std::vector<TokenId>> encode(
      std::string_view text,
      bool add_special_tokens) const override {
    std::vector<TokenId> ids;
    if (add_special_tokens) {
      ids.push_back(kBos);
    }
    while (!text.empty()) {
      if (text.starts_with("<s>")) {
        ids.push_back(kBos);
        text.remove_prefix(3);
      } else if (text.starts_with("</s>")) {
        ids.push_back(kEos);
        text.remove_prefix(4);
      } else {
        ids.push_back(static_cast<unsigned char>(text.front()));
        text.remove_prefix(1);
      }
    }
    if (add_special_tokens && appends_eos_) {
      ids.push_back(kEos);
    }
    return ids;
  }
  Result<std::string> decode(std::span<const TokenId> ids, bool)
      const override {
    std::string text;
    for (const TokenId id : ids) {
      text += static_cast<char>(id);
    }
    return text;
  }
  std::optional<std::string> id_to_token(TokenId id) const override {
    if (id == kBos || id == kEos) {
      return id == kBos ? "<s>" : "</s>";
    }
    return std::string(1, static_cast<char>(id));
  }
  Result<std::string> token_bytes(TokenId id) const override {
    if (id < 0 || id >= vocab_size()) {
      return Status::invalid_request("no token " + std::to_string(id));
    }
    return *id_to_token(id);
  }
  std::optional<TokenId> token_to_id(std::string_view token) const override {
    if (token == "<s>" || token == "</s>") {
      return token == "<s>" ? kBos : kEos;
    }
    return std::nullopt;
  }
  TokenId vocab_size() const override {
    return kEos + 1;
  }

 private:
  bool appends_eos_;
};

// Renders `text`, or fails, and remembers what it was given.
class FakeChatTemplate final : public ChatTemplate {
 public:
  explicit FakeChatTemplate(Result<std::string> rendered)
      : rendered_(std::move(rendered)) {}

  Result<std::string> render(std::string_view context_json) const override {
    const std::lock_guard lock(mutex_);
    context_ = context_json;
    return rendered_;
  }
  std::string context() const {
    const std::lock_guard lock(mutex_);
    return context_;
  }

 private:
  const Result<std::string> rendered_;
  mutable std::mutex mutex_;
  mutable std::string context_;
};

inline ServedModel make_fake_model() {
  ServedModel model;
  model.name = "tiny";
  model.created = std::chrono::seconds(1700000000);
  model.context_length = 4096;
  model.vocab_size = FakeTokenizer::kEos + 1;
  model.tokenizer = std::make_shared<FakeTokenizer>();
  model.chat_template =
      std::make_shared<FakeChatTemplate>(std::string("<s>hello"));
  model.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  return model;
}

} // namespace ingle
